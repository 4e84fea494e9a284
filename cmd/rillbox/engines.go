//go:build !windows

package main

import (
	"errors"
	"slices"

	"rillbox/cache"
	"rillbox/supervisor"
)

// engines is the supervisor with all that it stands on.
type engines struct {
	*supervisor.Supervisor
	cache *cache.Cache
}

// open wires the cache, the engines and the supervisor as the settings say.
// Nothing is fetched yet.
func (a *app) open() (*engines, error) {
	store, err := a.openCache()
	if err != nil {
		return nil, err
	}
	return &engines{supervisor.New(a.config.Limits, a.log), store}, nil
}

// Close ends all children first, then gives the cache and the runs' directory up.
func (e *engines) Close() error {
	e.Supervisor.Close()
	return errors.Join(e.cache.Close(), supervisor.RemoveServerDir())
}

// toolchains are those that serve the languages wanted, each once.
func (e *engines) toolchains(wanted []supervisor.Language) []supervisor.Toolchain {
	var list []supervisor.Toolchain
	for _, t := range e.Toolchains() {
		if slices.ContainsFunc(t.Describe().Languages, func(l supervisor.Language) bool { return slices.Contains(wanted, l) }) {
			list = append(list, t)
		}
	}
	return list
}
