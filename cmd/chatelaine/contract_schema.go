package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions/formatschema"
	"chatelaine/internal/durable"
)

func (a *app) contractSchemaCmd() *cobra.Command {
	var asJSON bool
	var out string
	cmd := &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schemas that editors check the files with",
		Long: `Print the JSON Schema (2020-12) of one kind of file: contract, targets or fixture.
Without NAME the three are listed; with --out all of them are written into a
folder, over those of an earlier release.

An editor that knows yaml-language-server completes, explains and checks a file
whose first line names its schema, relative to the file or as a URL:

  # yaml-language-server: $schema=../../schemas/contract.schema.json

The loader decides what is taken: contract lint finds what no schema can say.`,
		Example: "  chatelaine contract schema\n  chatelaine contract schema contract > contract.schema.json\n  chatelaine contract schema --out schemas",
		Args:    between(0, "NAME"),
		RunE: do(func(_ *cobra.Command, args []string) error {
			switch {
			case out != "" && len(args) > 0:
				return usage("--out writes all schemas", "leave NAME away, or redirect the output: chatelaine contract schema "+args[0]+" > FILE")
			case out != "":
				return a.writeSchemas(out, asJSON)
			case len(args) > 0:
				return a.printSchema(args[0])
			}
			return a.listSchemas(asJSON)
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "write all schemas into this folder")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (a *app) printSchema(name string) error {
	d, ok := formatschema.Named(name)
	if !ok {
		var names []string
		for _, d := range formatschema.Documents() {
			names = append(names, d.Name)
		}
		hint := "see chatelaine contract schema"
		if near := nearest(name, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return usage(fmt.Sprintf("there is no schema %q", name), hint)
	}
	_, err := a.out.Write(d.JSON())
	return err
}

// schemaFile is a schema for programs.
type schemaFile struct {
	Name string `json:"name"`
	File string `json:"file"`
	Of   string `json:"of"`
}

func (a *app) listSchemas(asJSON bool) error {
	var list []schemaFile
	var rows []row
	for _, d := range formatschema.Documents() {
		list = append(list, schemaFile{d.Name, d.File, d.Of})
		rows = append(rows, row{c(d.Name), c(d.File), c(d.Of)})
	}
	if asJSON {
		return a.printJSON(map[string]any{"schemas": list})
	}
	a.table([]string{"NAME", "FILE", "DESCRIBES"}, rows)
	return nil
}

// writeSchemas writes each file whole. They are made from the program and hold
// nothing of a person's, so earlier ones are replaced.
func (a *app) writeSchemas(dir string, asJSON bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usage(fmt.Sprintf("cannot make the folder %s: %v", dir, plainCause(err)))
	}
	var list []schemaFile
	for _, d := range formatschema.Documents() {
		path := filepath.Join(dir, d.File)
		if err := durable.WriteFile(path, d.JSON(), 0o644); err != nil {
			return refused(fmt.Sprintf("cannot write %s: %v", path, plainCause(err)))
		}
		list = append(list, schemaFile{d.Name, path, d.Of})
	}
	if asJSON {
		return a.printJSON(map[string]any{"schemas": list})
	}
	for _, s := range list {
		fmt.Fprintln(a.out, printable(s.File))
	}
	return nil
}
