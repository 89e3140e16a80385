// Package cluster lets several workers share tasks: it knows who is there, elects a
// leader, and says which worker runs which task.
//
//	          leader (any worker)                      every worker
//	members ─►                                            │
//	reports ─► Step ─► Assign ─► plan/WORKER ──► Member ──► tasks it runs
//	tasks   ─►  (pure)  (pure)   in the store              status node: the proof of a stop
//
// Assign is a pure function of workers, tasks and the plan before; Step adds what
// time has to do with it. Coordinator feeds Step while its session leads, Member is
// a worker's own part.
//
// Invariants:
//
//   - The plan is in the store and written by the leader of the present term only. A
//     leader that is lost leaves the plan as it is: nothing stops.
//   - A task stays where it is as long as that worker may run it, unless moving it
//     makes the load more even by more than the slack.
//   - A move is one change of the plan. The old worker stops and releases the task's
//     status node when nothing of it is left; the new one takes it then and not
//     before, whoever hears of the move first.
//   - A worker that is gone keeps its tasks for the grace delay; one that leaves in
//     order, or is drained, hands them over one by one.
//   - A task goes to a worker of its group that has the plugins by their digests.
//     Where there is none it waits, with a reason that commands show.
//   - A task that keeps failing stays where it is: its worker waits longer each time.
//
// Life cycle: New, Run until its context ends; Tasks and Changed beside it.
//
// What the package does not do: it starts and stops nothing (host/daemon does) and
// decides nothing about ownership (the status node and the targets do).
package cluster
