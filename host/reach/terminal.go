package reach

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Terminal runs programs in a place of its own, such as the terminals of an
// editor, in which no kernel sandbox of ours holds them. The rights were
// checked before it is called.
type Terminal interface {
	// Run is Runner.Run. Of the Program it heeds Call, Argv, Dir, Env, Timeout
	// and Output; Argv[0] is absolute. Of what is over Output the tail is kept.
	Run(ctx context.Context, p Program) (Exit, error)
}

// InTerminal is the Exit.Sandbox of a program that a Terminal ran.
const InTerminal = "terminal"

// prepare checks a program and the right to start it, and finds it in its PATH.
func (r *Runner) prepare(ctx context.Context, rights policy.Rights, p *Program) error {
	if len(p.Argv) == 0 || !filepath.IsAbs(p.Dir) {
		return fmt.Errorf("a program needs a command and an absolute folder: %w", abi.ErrInvalid)
	}
	for _, a := range p.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("an argument holds a NUL byte: %w", abi.ErrInvalid)
		}
	}
	if p.Env == nil {
		p.Env = CleanEnv()
	}
	path, err := lookPath(p.Argv[0], p.Env)
	if err != nil {
		return err
	}
	use := p.Use
	if use.Cap == "" {
		use = policy.Use{Cap: abi.Exec, Target: strings.Join(append([]string{path}, p.Argv[1:]...), "\x00")}
		if path != p.Argv[0] {
			use.Name = p.Argv[0]
		}
	}
	if err := rights.Check(ctx, use); err != nil {
		return err
	}
	if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("the folder %q to run in is not there: %w", p.Dir, fs.ErrNotExist)
	}
	p.Argv = append([]string{path}, p.Argv[1:]...)
	return nil
}

// inTerminal runs a program through r.Terminal.
func (r *Runner) inTerminal(ctx context.Context, rights policy.Rights, p Program) (Exit, error) {
	if err := r.prepare(ctx, rights, &p); err != nil {
		return Exit{}, err
	}
	if p.Output == 0 {
		p.Output = defaultOutput
	}
	began := time.Now()
	exit, err := r.Terminal.Run(ctx, p)
	exit.Sandbox, exit.Wall = InTerminal, time.Since(began)
	return exit, err
}
