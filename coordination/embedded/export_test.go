package embedded

// Abandon leaves the nodes of a session whose process is gone.
func (s *Store) Abandon(session string) { s.forget(session) }
