// Package pipeline moves blocks from one reader through built-in and plugged-in
// transforms to one or more writers, each with its own progress.
package pipeline
