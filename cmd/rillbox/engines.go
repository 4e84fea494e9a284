//go:build !windows

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"rillbox/cache"
	"rillbox/deno/permission"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

// engines is the supervisor with all that it stands on.
type engines struct {
	*supervisor.Supervisor
	cache  *cache.Cache
	shared supervisor.Shared // the directory that all programs have; its path is empty when there is none
}

// open wires the cache, the engines and the supervisor as the settings say.
// Nothing is fetched yet.
func (a *app) open() (*engines, error) {
	if err := a.config.checkWall(launcher.Offered()); err != nil {
		return nil, usageError{err}
	}
	for _, text := range a.config.unenforced(launcher.OfferedCgroup(), sandbox.TellsCPU) {
		a.log.Warn(text)
	}
	shared, err := a.shared()
	if err != nil {
		return nil, err
	}
	if err := a.checkWriteGrants(); err != nil {
		return nil, usageError{err}
	}
	store, err := a.openCache()
	if err != nil {
		return nil, err
	}
	e, err := a.openOn(store, shared)
	if err != nil {
		return nil, usageError{errors.Join(err, store.Close())}
	}
	return e, nil
}

// openOn wires engines and a supervisor to a cache.
func (a *app) openOn(store *cache.Cache, shared supervisor.Shared) (*engines, error) {
	toolchains, err := a.config.toolchains(store, shared.Path, a.log)
	if err != nil {
		return nil, err
	}
	s := supervisor.New(a.config.Limits, a.log, toolchains...)
	if shared.Path != "" {
		s.Share(shared)
	}
	return &engines{s, store, shared}, nil
}

// checkWall refuses to start with less than the wall that the settings ask for.
func (c *config) checkWall(offered launcher.Support) error {
	less := ""
	switch {
	case c.Wall <= launcher.Deno:
		return nil // every machine has it
	case c.Engine.WithoutSecondWall:
		less = "without_second_wall leaves it out"
	case slices.ContainsFunc(slices.Collect(maps.Values(c.Permissions)), (*permission.Permissions).All):
		less = "programs with --allow-all have none"
	case c.Wall > offered.Level:
		less = fmt.Sprintf("this machine offers %v (%s)", offered.Level, offered.Detail)
	default:
		return nil
	}
	return fmt.Errorf("wall = %v is set, and nothing starts with less: %s", c.Wall, less)
}

// unenforced lists the limits that were set and can't be enforced on this machine.
func (c *config) unenforced(offered launcher.CgroupSupport, tellsCPU bool) (list []string) {
	if !offered.Processors && c.from("cpus") != "default" {
		list = append(list, fmt.Sprintf("cpus = %v is set but not enforced on this machine (%s)", c.Limits.CPUs, offered.Detail))
	}
	if !tellsCPU && c.Limits.CPUTime > 0 {
		list = append(list, fmt.Sprintf("cpu_time = %v is set but not enforced on this system, which does not tell what a program has used", c.Limits.CPUTime))
	}
	return list
}

func (c *config) toolchains(store *cache.Cache, workspace string, log *slog.Logger) ([]job.Toolchain, error) {
	options := c.Engine
	options.Cache, options.Limits, options.Workspace, options.Log = store, c.Limits, workspace, log
	var toolchains []job.Toolchain
	for _, kind := range engineKinds {
		options.Permissions = *c.Permissions[kind.name]
		t, err := kind.open(options)
		if err != nil {
			for _, t := range toolchains {
				t.Close()
			}
			return nil, fmt.Errorf("cannot make the engine for %s: %w", kind.titles(), err)
		}
		toolchains = append(toolchains, t)
	}
	return toolchains, nil
}

// Close ends all children first, then gives the cache and the runs' directory up.
func (e *engines) Close() error {
	e.Supervisor.Close()
	return errors.Join(e.cache.Close(), sandbox.RemoveServerDir())
}
