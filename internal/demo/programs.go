package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"chatelaine/internal/client"
)

const (
	// startLimit is how long the daemon may take until it answers. It needs a
	// tenth of a second; machines that are busy need more.
	startLimit = time.Minute
	// stopLimit is how long it may take to end by itself; no call runs then.
	stopLimit = time.Minute
	// lookEvery is the pause between two looks at something that is about to
	// happen.
	lookEvery = 10 * time.Millisecond
)

// programs runs the real binaries in one home.
type programs struct {
	bin     string
	home    *home
	printed bytes.Buffer // everything that the command line has printed
	log     *os.File
	daemon  *exec.Cmd
	ended   chan struct{}
	end     error // how the daemon ended; read after ended is closed
}

// kept are the variables that the programs get besides the places. Nothing of
// the caller's own installation, session or proxies comes along.
var kept = []string{"PATH", "TMPDIR", "LANG", "LC_ALL", "TZ", "GOCOVERDIR"}

func (p *programs) environment() []string {
	env := []string{
		"HOME=" + p.home.dir, "NO_COLOR=1", client.EnvConfig + "=" + p.home.places.Config,
		client.EnvState + "=" + p.home.places.State, client.EnvRuntime + "=" + p.home.places.Runtime,
	}
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// command prepares a program. Each text stands ready on a descriptor, from 3
// on. Its own process group keeps a Ctrl-C at the terminal from ending it
// before the demo does.
func (p *programs) command(ctx context.Context, program string, args []string, texts ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, program), args...)
	cmd.Env, cmd.Dir = p.environment(), p.home.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, text := range texts {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, r)
		_, err = w.WriteString(text + "\n") // shorter than any pipe
		if err = errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
	}
	return cmd, nil
}

// result is how a command ended.
type result struct {
	out, err string
	exit     int
}

// said is a result for a person: what it printed, in one line.
func (r result) said() string {
	text := strings.TrimSpace(r.out + "\n" + r.err)
	return fmt.Sprintf("exit code %d: %s", r.exit, strings.Join(strings.Fields(text), " "))
}

// run runs a program to its end; an error means that it could not be run.
func (p *programs) run(ctx context.Context, program, stdin string, args []string, texts ...string) (result, error) {
	cmd, err := p.command(ctx, program, args, texts...)
	if err != nil {
		return result{}, err
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err = cmd.Run()
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	p.printed.Write(out.Bytes())
	p.printed.Write(errs.Bytes())
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, fmt.Errorf("%s: %w", program, err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, ctx.Err()
}

// must runs a chatelaine command that has to succeed.
func (p *programs) must(ctx context.Context, stdin string, args []string, texts ...string) (string, error) {
	r, err := p.run(ctx, "chatelaine", stdin, args, texts...)
	if err == nil && r.exit != 0 {
		err = fmt.Errorf("chatelaine %s: %s", strings.Join(args, " "), r.said())
	}
	return r.out, err
}

// start runs the daemon and waits until it answers.
func (p *programs) start(ctx context.Context) error {
	if p.log == nil {
		f, err := os.OpenFile(p.home.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		p.log = f
	}
	cmd, err := p.command(context.WithoutCancel(ctx), "chatelained", []string{"serve"})
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("chatelained: %w", err)
	}
	ended := make(chan struct{})
	p.daemon, p.ended = cmd, ended
	go func() {
		p.end = cmd.Wait()
		close(ended)
	}()
	op := p.operator()
	defer op.Close()
	var last error
	err = until(ctx, startLimit, "the daemon to answer", func() (bool, error) {
		select {
		case <-ended:
			return false, fmt.Errorf("the daemon ended at once: %v", p.end)
		default:
		}
		_, last = op.Status(ctx)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w; the last try: %w", err, last)
	}
	return err
}

// kill is kill -9.
func (p *programs) kill() {
	if p.daemon == nil {
		return
	}
	_ = p.daemon.Process.Kill()
	<-p.ended
	p.daemon = nil
}

// stop ends the daemon as a service manager does.
func (p *programs) stop() error {
	if p.daemon == nil {
		return nil
	}
	_ = p.daemon.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		p.daemon = nil
		return p.end
	case <-time.After(stopLimit):
		p.kill()
		return fmt.Errorf("the daemon did not end within %s of SIGTERM", stopLimit)
	}
}

func (p *programs) close() {
	p.kill()
	if p.log != nil {
		_ = p.log.Close()
	}
}

func (p *programs) operator() *client.Operator {
	return client.NewOperator(p.home.places.OperatorSocket(), client.OwnAndRoot(), "chatelaine-demo")
}

// until looks at f until it says yes.
func until(ctx context.Context, limit time.Duration, what string, f func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		done, err := f()
		if done || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %s for %s", limit, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
