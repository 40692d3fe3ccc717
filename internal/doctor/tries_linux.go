package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// try is one live attack on a process. It returns nil where it worked; then what
// was opened is closed again, and nothing that was read is kept.
type try struct {
	id, attack, still string
	attempt           func(pid int) error
}

var liveTries = []try{
	{"memory", "read the daemon's memory (/proc/PID/mem)", "read the daemon's memory", func(pid int) error { return openAndLetGo(pid, "mem") }},
	{"memory-call", "read the daemon's memory (process_vm_readv)", "read the daemon's memory", readByCall},
	{"environ", "read the daemon's environment (/proc/PID/environ)", "read the daemon's environment", func(pid int) error { return openAndLetGo(pid, "environ") }},
	{"descriptors", "look at the daemon's open files (/proc/PID/fd)", "look at the daemon's open files", listDescriptors},
	{"descriptor-copy", "copy an open file of the daemon (pidfd_getfd)", "copy open files of the daemon", copyDescriptor},
	{"trace", "attach to the daemon as a debugger (ptrace)", "attach to the daemon as a debugger", attach},
}

func tryIDs() []string {
	var out []string
	for _, t := range liveTries {
		out = append(out, t.id)
	}
	return out
}

// tries attacks the running daemon.
func (e *exam) tries() []Finding {
	var out []Finding
	for _, t := range liveTries {
		_, f := e.process(t.id, t.attack)
		switch {
		case f != nil:
			out = append(out, *f)
		case e.isRoot():
			out = append(out, unseen(t.id, t.attack, rootTries, asAgent))
		default:
			out = append(out, t.finding(t.attempt(e.Daemon.PID)))
		}
	}
	return out
}

func (t try) finding(err error) Finding {
	f := Finding{ID: t.id, Attack: t.attack, Verdict: Solved}
	switch {
	case err == nil:
		f.Verdict, f.Detail, f.WayOut = NotSolved, "it worked, and was let go at once", "restart the daemon; if it works again, report this"
		return f.Still(t.still)
	case errors.Is(err, fs.ErrPermission):
		f.Detail = "refused: " + reason(err)
	case errors.Is(err, unix.ENOSYS):
		f.Detail = "the kernel has no such call"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return unseen(t.id, t.attack, "the process was gone", "ask again")
	default:
		return unseen(t.id, t.attack, "the try came to nothing: "+reason(err), "")
	}
	return f
}

// reason is the system's own word for an error, without paths.
func reason(err error) string {
	var no unix.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return "an error that is not the system's"
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

func openAndLetGo(pid int, name string) error {
	f, err := os.Open(procFile(pid, name))
	if err != nil {
		return err
	}
	return f.Close()
}

// readByCall asks for one byte at an address where nothing lies: the kernel looks
// at the right to read before it looks at the address.
func readByCall(pid int) error {
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

func listDescriptors(pid int) error {
	d, err := os.Open(procFile(pid, "fd"))
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Readdirnames(1)
	return err
}

func copyDescriptor(pid int) error {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(p)
	fd, err := unix.PidfdGetfd(p, 0, 0)
	switch {
	case errors.Is(err, unix.EBADF): // allowed, but there is none of that number
		return nil
	case err != nil:
		return err
	}
	return unix.Close(fd)
}

// detachLimit bounds the wait for a thread to stop so that it can be let go,
// which takes microseconds. After it the end of this program lets it go.
const detachLimit = time.Second

// attach becomes the tracer of the daemon's first thread and lets it go at once:
// the thread stands still for microseconds. Should this program die in between,
// the kernel lets it go (PTRACE_SEIZE without PTRACE_O_EXITKILL, ptrace(2)).
func attach(pid int) error {
	runtime.LockOSThread() // the tracer is a thread, not a process
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(pid); err != nil {
		return nil
	}
	for end := time.Now().Add(detachLimit); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		var status unix.WaitStatus
		got, err := unix.Wait4(pid, &status, unix.WALL|unix.WNOHANG, nil)
		if err == nil && got == pid && status.Stopped() && status.StopSignal() != unix.SIGTRAP {
			_ = unix.PtraceCont(pid, int(status.StopSignal())) // a signal that came in between is its own
			continue
		}
		if err != nil || got == pid {
			break
		}
	}
	_ = unix.PtraceDetach(pid) // refused only where the thread is gone
	return nil
}

func tracerOf(pid int) string {
	e := exam{proc: "/proc"}
	return e.field(strconv.Itoa(pid), "TracerPid")
}
