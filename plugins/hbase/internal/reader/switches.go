package reader

// Switches turn single promises off, to show that tests notice.
type Switches struct {
	AnswerEarly bool // sources are answered when their changes arrive
	FirstCells  bool // rows are given as they were shipped, as if nothing else were in them
}
