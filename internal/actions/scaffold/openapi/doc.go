// Package openapi reads one operation of an OpenAPI 3.0 or 3.1 description and
// makes the outline of a contract of it. A description is a stranger's file: it
// is read within bounds, references lead only to places in it, nothing that it
// leaves open is taken over, and none of its sentences reaches a contract but as a
// comment of one line. It must never open a connection or another file.
// cmd/chatelaine imports it; it imports scaffold, actions and validate.
package openapi
