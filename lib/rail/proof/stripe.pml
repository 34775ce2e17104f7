// One large transfer in stripes over two rails (docs/decisions/0045-rail-states-and-policies.md,
// "Stripes"). N messages; a rail has at most W of them, granted one by one. A rail's messages of
// one attempt take the entries of its queue in order, so after a message that does not arrive the
// later ones are written in the wrong places.
//
// A message may be refused, or its link may fail: then the messages of the link are lost, or arrive
// at any later time and without an answer. The sender reports the failure by FAILED, and by CLOSED
// once no message of the attempt is on its way. Control messages take any rail and are not lost. A
// failed rail gets nothing before its link works. Each activity is a process of its own, so that
// weak fairness gives each its turn.
//
// Switches: STOP (the receiver stops the queue at FAILED and gives the stripes to the other rail;
// otherwise it waits for CLOSED), FAILS (how often something fails), BACK (a link that failed works
// again). Switches that break a rule; spin must find each: BREAK_STOP (stripes are given again
// before the queue has stopped), BREAK_CLOSED (CLOSED goes while messages are on their way),
// BREAK_REST (the rail gets a new attempt before CLOSED), BREAK_KEPT (all that arrived is kept, not
// the leading messages alone), BREAK_BACK (stripes of a failed attempt are not given again).
#define N 3
#define W 2
#ifndef FAILS
#define FAILS 1
#endif
#define NOTHING 15

mtype = { FAILED, CLOSED };

chan grants[2] = [2 * N] of { byte, byte };      // message, attempt
chan reports[2] = [4] of { mtype, byte, byte };  // attempt, leading messages that arrived
chan net[2] = [2 * N] of { byte, byte };         // message, attempt

// The links.
bool works[2];
byte fails = FAILS;

// The sender's side of each rail.
byte sattempt[2];
bool sstopped[2];  // FAILED was sent, CLOSED was not
bool hurt[2];      // a message of the attempt was refused, or its answer lost
byte leading[2];   // messages that were answered before the first that was not

// The receiver's side of each rail.
byte rattempt[2];
bool open[2];      // the card's queue takes messages
bool rests[2];     // until CLOSED
byte arrived[2];   // of the attempt
chan entries[2] = [N] of { byte };  // posted and not used
chan given[2] = [N] of { byte };    // all messages of the attempt, in order

#define FREE 0
#define HERE 3     // or 1 + rail
byte owner[N];
byte content[N];   // the message that was written there
bool users;        // the memory is the user's again

#define free_one (owner[0] == FREE || owner[1] == FREE || owner[2] == FREE)

proctype Grant(byte r) {
  byte m;
end:
  do
  :: atomic { works[r] && !rests[r] && !users && free_one && len(given[r]) - arrived[r] < W ->
       do
       :: owner[m] != FREE -> m++
       :: else -> break
       od;
       owner[m] = 1 + r;
       open[r] = true;
       entries[r]!m;
       given[r]!m;
       assert(nfull(grants[r]));
       grants[r]!m, rattempt[r];
       m = 0 }
  od
}

proctype Post(byte r) {
  byte m, a;
end:
  do
  :: atomic { nempty(grants[r]) ->
       grants[r]?m, a;
       if
       :: a == sattempt[r] && !sstopped[r] ->
            assert(nfull(net[r]));
            net[r]!m, a;
            hurt[r] = hurt[r] || !works[r]
       :: else  // the attempt is over
       fi;
       m = 0; a = 0 }
  od
}

// A message leaves the network. Without an entry it is refused until there is one.
proctype Land(byte r) {
  byte m, a, e;
end:
  do
  :: atomic { nempty(net[r]) && open[r] && nempty(entries[r]) ->
       net[r]?m, a;
       entries[r]?e;
       assert(!users && owner[e] == 1 + r);
       content[e] = m;
       arrived[r]++;
       if
       :: a == sattempt[r] && !hurt[r] -> leading[r]++
       :: else
       fi;
       m = 0; a = 0; e = 0 }
  :: atomic { nempty(net[r]) && !open[r] -> net[r]?m, a; m = 0; a = 0 }
  :: atomic { nempty(net[r]) && !works[r] -> net[r]?m, a; m = 0; a = 0 }
  od
}

proctype Fail() {
  byte r, m, a;
end:
  do
  :: atomic { fails > 0 && (nempty(net[0]) || nempty(net[1]) || (works[0] && works[1])) ->
       if
       :: nempty(net[0]) -> r = 0
       :: nempty(net[1]) -> r = 1
       :: works[0] && works[1] -> r = 0
       :: works[0] && works[1] -> r = 1
       fi;
       if
       :: nempty(net[r]) -> net[r]?m, a  // refused
       :: works[0] && works[1] -> works[r] = false
       fi;
       fails--;
       hurt[r] = true;
       r = 0; m = 0; a = 0 }
  :: break  // nothing fails any more
  od
}

#ifdef BACK
proctype Repair(byte r) {
end:
  do
  :: atomic { !works[r] -> works[r] = true }
  od
}
#endif

proctype Report(byte r) {
end:
  do
  :: atomic { hurt[r] && !sstopped[r] ->
       sstopped[r] = true;
       reports[r]!FAILED, sattempt[r], leading[r] }
#ifdef BREAK_CLOSED
  :: atomic { sstopped[r] ->
#else
  :: atomic { sstopped[r] && empty(net[r]) ->
#endif
       reports[r]!CLOSED, sattempt[r], leading[r];
       sstopped[r] = false;
       hurt[r] = false;
       leading[r] = 0;
       sattempt[r]++ }
  od
}

inline stop(r) {
  open[r] = false;
  do
  :: entries[r]?m
  :: empty(entries[r]) -> break
  od;
  m = 0
}

inline give_back(r, kept) {
#ifdef BREAK_KEPT
  kept = arrived[r];
#endif
  kept = (kept < arrived[r] -> kept : arrived[r]);
  do
  :: given[r]?m ->
       if
       :: kept > 0 -> owner[m] = HERE; kept--
       :: else ->
#ifdef BREAK_BACK
            skip
#else
            owner[m] = FREE
#endif
       fi
  :: empty(given[r]) -> break
  od;
  arrived[r] = 0;
  m = 0
}

proctype Receive(byte r) {
  byte a, kept, m;
end:
  do
  :: atomic { reports[r]?FAILED, a, kept ->
#ifdef STOP
       assert(a == rattempt[r] && !rests[r]);
#ifndef BREAK_STOP
       stop(r);
#endif
       give_back(r, kept);
#ifdef BREAK_REST
       rattempt[r]++;
#else
       rests[r] = true;
#endif
#endif
       a = 0; kept = 0 }
  :: atomic { reports[r]?CLOSED, a, kept ->
#ifdef STOP
#ifndef BREAK_REST
       rests[r] = false;
       open[r] = false;
       rattempt[r]++;
#endif
#else
       assert(a == rattempt[r]);
       stop(r);
       give_back(r, kept);
       rattempt[r]++;
#endif
       a = 0; kept = 0 }
  od
}

#define here(m) (owner[m] == HERE -> 1 : 0)
#define all_here (arrived[0] + arrived[1] + here(0) + here(1) + here(2) == N)

proctype Done() {
  byte m;
  atomic { all_here ->
    for (m : 0 .. N - 1) {
      assert(content[m] == m)
    }
    users = true }
}

init {
  byte i;
  atomic {
    for (i : 0 .. N - 1) {
      content[i] = NOTHING
    }
    for (i : 0 .. 1) {
      works[i] = true;
      run Grant(i);
      run Post(i);
      run Land(i);
      run Report(i);
      run Receive(i);
#ifdef BACK
      run Repair(i);
#endif
    }
    run Fail();
    run Done();
    i = 0
  }
}

// The transfer ends.
ltl ends { <> users }
