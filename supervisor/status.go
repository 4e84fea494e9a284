package supervisor

// Of is what one client has now.
type Of struct {
	Programs int `json:"programs"` // that run or wait
	Sessions int `json:"sessions"`
}

// LoadOf is what each client has now.
func (s *Supervisor) LoadOf() map[string]Of {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := map[string]Of{}
	for _, e := range s.running {
		o := of[e.client]
		o.Programs++
		of[e.client] = o
	}
	for key := range s.open {
		o := of[key.client]
		o.Sessions++
		of[key.client] = o
	}
	return of
}
