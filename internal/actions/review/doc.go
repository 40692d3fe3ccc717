// Package review turns a contract into one page for the person who must decide
// about it: what an agent may vary, where it can end up, what is sent, what
// comes back, what is asked, and how it is done once. There is one model (Page)
// and three writers of it: text, JSON by its own members, and HTML.
//
// It must never decide, send or load anything by itself, and it shows nothing
// that the contract and the site file do not say. internal/actions/compare and
// cmd/chatelaine may import it; it imports internal/actions, its reader of YAML
// and fault.
package review
