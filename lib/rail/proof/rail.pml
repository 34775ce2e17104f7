// Numbered messages over two rails, of which one may fail at any time
// (docs/decisions/0045-rail-states-and-policies.md, "Messages in doubt"). One sender with N
// messages, of which W may be under way, and one receiver.
//
// When a rail fails, the answers to its messages are lost; each of these messages is lost too, or
// arrives at any later time. The sender's card then reports them in doubt, and the sender sends
// them again under their numbers. A path is up or not; a hold only delays its return. Each activity
// is a process of its own, so that weak fairness gives each its turn.
//
// Switches: FAILS (how often a rail fails), BACK (a rail that failed works again). Switches that
// break a rule; spin must find each: BREAK_TWICE (the receiver does not drop a message that it had),
// BREAK_ORDER (it delivers messages as they come), BREAK_DOUBT (a message in doubt is not sent
// again), BREAK_MOVE (it waits for its own rail), BREAK_PROBE (a path is not probed).
#ifndef N
#define N 3
#endif
#define W 2
#ifndef FAILS
#define FAILS 1
#endif

#define WAITS 0
#define FLIES 1
#define DOUBT 2
#define SENT 3

// The sender's side.
byte state[N];
byte rail[N];     // in FLIES and DOUBT
bool hurt[N];     // in FLIES: the answer is lost
byte first;       // lowest message that is not SENT
bool up[2];

// The rails. A copy of a message in doubt stays in its channel.
bool works[2];
byte fails = FAILS;
chan net[2] = [N * (FAILS + 1)] of { byte };

// The receiver's side.
byte next;        // number of the next message to deliver
bool early[N];
byte delivered;   // by the application's count

inline deliver(m) {
  assert(m == delivered);  // none is lost, doubled or out of order
  delivered++
}

inline receive(m) {
#ifdef BREAK_ORDER
  if
  :: early[m]
  :: else -> early[m] = true; deliver(m)
  fi
#else
  if
#ifndef BREAK_TWICE
  :: m < next || early[m]  // a double
#endif
#ifdef BREAK_TWICE
  :: m < next -> deliver(m)
  :: m >= next ->
#else
  :: else ->
#endif
       early[m] = true;
       do
       :: next < N && early[next] -> deliver(next); next++
       :: else -> break
       od
  fi
#endif
}

#define may_send(m, r) \
  (m < N && m < first + W && up[r] && (state[m] == WAITS || (state[m] == DOUBT && moves(m, r))))
#ifdef BREAK_MOVE
#define moves(m, r) (rail[m] == r)
#else
#define moves(m, r) (true)
#endif

proctype Send(byte r) {
  byte m;
end:
  do
  :: atomic { may_send(first, r) || may_send(first + 1, r) ->
       if
       :: may_send(first, r) -> m = first
       :: may_send(first + 1, r) -> m = first + 1
       fi;
       assert(nfull(net[r]));
       net[r]!m;
       state[m] = FLIES;
       rail[m] = r;
       hurt[m] = !works[r];
       m = 0 }
  od
}

// A message leaves the network.
proctype Land(byte r) {
  byte m;
end:
  do
  :: atomic { nempty(net[r]) ->
       net[r]?m;
       if
       :: state[m] == FLIES && rail[m] == r && !hurt[m] ->
            receive(m);
            state[m] = SENT;
            do
            :: first < N && state[first] == SENT -> first++
            :: else -> break
            od
       :: else ->
            if
            :: receive(m)
            :: skip  // it is lost
            fi
       fi;
       m = 0 }
  od
}

// The card reports a message in doubt.
proctype Doubt(byte m) {
end:
  do
  :: atomic { state[m] == FLIES && hurt[m] ->
#ifdef BREAK_DOUBT
       state[m] = SENT;
#else
       state[m] = DOUBT;
#endif
       hurt[m] = false;
       up[rail[m]] = false }
  od
}

#ifndef BREAK_PROBE
proctype Probe(byte r) {
end:
  do
  :: atomic { !up[r] && works[r] -> up[r] = true }
  od
}
#endif

proctype Fail() {
  byte r, m;
end:
  do
  :: atomic { fails > 0 && works[0] && works[1] ->  // one rail lives
       if
       :: r = 0
       :: r = 1
       fi;
       fails--;
       works[r] = false;
       for (m : 0 .. N - 1) {
         if
         :: state[m] == FLIES && rail[m] == r -> hurt[m] = true
         :: else
         fi
       }
       r = 0; m = 0 }
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

init {
  byte i;
  atomic {
    for (i : 0 .. 1) {
      works[i] = true;
      up[i] = true;
      run Send(i);
      run Land(i);
#ifndef BREAK_PROBE
      run Probe(i);
#endif
#ifdef BACK
      run Repair(i);
#endif
    }
    for (i : 0 .. N - 1) {
      run Doubt(i)
    }
    run Fail();
    i = 0
  }
}

// Each message comes to the application.
ltl all { <> (delivered == N) }
