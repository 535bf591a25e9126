/* The protocol of leases, fences and take-over (core/work.py, core/worker.py), for spin.
 *
 * Two workers, one machine, one lane. Clocks differ by up to SKEW; a worker may die and come back,
 * may be cut off from the database, and a newer request may replace or drop the job at any moment.
 * Each database operation is one atomic step, as a statement on the row is.
 *
 * Checked: never two workers at the machine at once; nothing is recorded by a worker whose job was
 * taken over or replaced. With NEVER_DONE, that no job is ever finished: spin must find one that is.
 */
#ifndef NEVER_DONE
#define NEVER_DONE 0
#endif
#ifndef GRACE
#define GRACE 1
#endif
#define LEASE 4
#define SKEW  1
#define END   10
#define NONE  2

byte now = 0;

/* The row. */
bool there = true;
byte owner = NONE;
byte until = 0;
byte fence = 1;
byte current = 1;   /* the fence of whoever may record: equal to fence, kept apart for the check */

byte at_machine = 0;
bool driving[2];
byte mine[2];
byte sure[2];
bool up[2] = true;
bool connected[2] = true;
byte replaced = 0;

#define LOCAL(w)  (now + (w) * SKEW)
#define STOPS(w)  (driving[w] && LOCAL(w) >= sure[w])
#define LEAVE(w)  driving[w] = false; at_machine--

proctype Worker(byte w) {
  do
  :: atomic { (up[w] && connected[w] && !driving[w] && there
       && (owner == NONE || until + GRACE < LOCAL(w))) ->      /* claim */
       fence++; current = fence;
       owner = w; until = LOCAL(w) + LEASE; mine[w] = fence;
       sure[w] = until - GRACE;
       driving[w] = true; at_machine++;
       assert(at_machine == 1) }
  :: atomic { up[w] && connected[w] && driving[w] && owner == w && LOCAL(w) < sure[w] -> /* renew */
       until = LOCAL(w) + LEASE;
       if
       :: fence == mine[w] -> sure[w] = until - GRACE
       :: else -> LEAVE(w); owner = NONE                       /* told: replaced */
       fi }
  :: atomic { up[w] && connected[w] && driving[w] ->            /* report */
       if
       :: there && fence == mine[w] ->
            assert(owner == w && current == mine[w]);
            there = false; owner = NONE;
            assert(!NEVER_DONE)
       :: else ->                                              /* Lost: hand back what is ours */
            if :: owner == w -> owner = NONE :: else fi
       fi;
       LEAVE(w) }
  :: atomic { STOPS(w) -> LEAVE(w) }                            /* fences itself */
  :: now >= END -> break
  od
}

proctype World(byte w) {
  do
  :: atomic { up[w] && now < END / 2 -> up[w] = false; if :: driving[w] -> LEAVE(w) :: else fi }
  :: atomic { !up[w] -> up[w] = true }
  :: atomic { connected[w] && now < END / 2 -> connected[w] = false }
  :: atomic { !connected[w] -> connected[w] = true }
  :: now >= END -> break
  od
}

/* A request puts another job in the place of the old one; the lease of its holder stays. */
proctype Request() {
  do
  :: atomic { replaced < 2 && there -> replaced++; fence = fence + 3; current = fence }
  :: now >= END || replaced == 2 -> break
  od
}

/* Time passes, but not past the moment in which a worker must stop. */
proctype Clock() {
  do
  :: atomic { now < END && !STOPS(0) && !STOPS(1) -> now++ }
  :: now >= END -> break
  od
}

init {
  atomic { run Worker(0); run Worker(1); run World(0); run World(1); run Request(); run Clock() }
}
