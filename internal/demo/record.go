package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// record stops the daemon and verifies what it wrote, then a copy in which one
// byte is another.
func (p *play) record(ctx context.Context) error {
	if err := p.p.stop(); err != nil {
		return fmt.Errorf("stopping the daemon: %w", err)
	}
	audit := filepath.Join(p.home.places.State, "audit")
	whole, err := p.p.run(ctx, "chatelaine", "", []string{"audit", "verify", audit})
	if err != nil {
		return err
	}
	p.claim(claim{"chatelaine audit verify", fmt.Sprintf("exit code %d", whole.exit),
		whole.exit == 0 && strings.Contains(whole.out, "\nchain: valid\n"), "chain: valid; it said " + whole.said()})
	p.bytes("printed", firstLines(whole.out, 4))

	damaged := p.home.path("damaged")
	if err := copySegments(audit, damaged); err != nil {
		return fmt.Errorf("copying the record: %w", err)
	}
	seq, err := spoil(damaged)
	if err != nil {
		return err
	}
	broken, err := p.p.run(ctx, "chatelaine", "", []string{"audit", "verify", damaged})
	if err != nil {
		return err
	}
	want := fmt.Sprintf("first broken sequence: %d", seq)
	named := ""
	for line := range strings.Lines(broken.out) {
		if strings.HasPrefix(line, "first broken sequence:") {
			named = strings.TrimSpace(line)
		}
	}
	p.claim(claim{"one byte changed in a copy", fmt.Sprintf("exit code %d: %s  (the byte is in record %d)", broken.exit, named, seq),
		broken.exit == 1 && named == want, want + ", exit code 1; it said " + broken.said()})
	return nil
}

// copySegments copies what is the record: its segments.
func copySegments(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, segmentGlob))
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// firstLines joins the first lines of a text.
func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(n, len(lines))], ", ")
}
