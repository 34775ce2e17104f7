// Barriers of one group by classic dissemination: N members, R rounds, E barriers. A member sends to
// TO(i, r) in round r, and awaits FROM(i, r). Notifications overtake each other. LOSS is how often a
// notification or its answer is lost and sent again, so that copies come late. With DEATH, member 0
// dies at any time (any member would do, since all are alike). Members that wait for it, or for its
// answer, learn of it, and tell their neighbours.
//
// A member that has passed a barrier knows that all have arrived at it (assertion). No member hangs:
// each one that lives passes all barriers, or is told of the failure (no invalid end state).
//
// In software (lib/barrier/meeting.hpp) the transport loses nothing and epochs have 32 bits; the
// card's engine has epochs modulo 8, answers and copies. The rules are the same but for these.
//
// Switches that break a rule; spin must find each: BREAK_EARLY (a member passes without all that it
// awaits), BREAK_GATE (a round is sent before all that is awaited in earlier rounds has come),
// BREAK_ANSWER (a member passes without all answers), BREAK_HOLD (a member that has sent again passes
// while copies are on their way), BREAK_EPOCH (epochs have 2 bits), BREAK_NEXT (a notification for
// the next barrier is dropped), BREAK_POISON (a member that has not arrived forgets a failure),
// BREAK_TELL (a member that is told while it waits does not tell others).
#ifndef N
#define N 3
#endif
#ifndef R
#define R 2
#endif
#ifndef E
#define E 3
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef EPOCHS
#define EPOCHS 8
#endif
#ifdef BREAK_EPOCH
#undef EPOCHS
#define EPOCHS 4
#endif
#define STALE 3  // late copies of so many epochs are known as such
#define ALL ((1 << R) - 1)
#define TO(i, r) ((i + (1 << r)) % N)
#define FROM(i, r) ((i + N * 4 - (1 << r)) % N)
#define AT(i, r) ((i) * R + (r))

byte arrived[N];  // by member: epoch of the last barrier at which it has arrived
bool inside[N];   // it has not passed that barrier
byte got[N];      // rounds, of this barrier
byte early[N];     // rounds, of the next one
byte sent[N];
byte done[N];     // answered
bool resent[N];
bool failed[N];
bool dead[N];
byte wire[N * R]; // notification on its way: 1 + epoch modulo EPOCHS; 0: none
byte copy[N * R]; // late copy
bool word[N * N]; // on its way: the group has failed
byte losses = LOSS;

inline tell(i) {
  word[i * N + TO(i, 0)] = true;
  word[i * N + FROM(i, 0)] = true
}

inline fail(i) {
  failed[i] = true;
  inside[i] = false;
  tell(i)
}

inline pass(i) {
  byte other;
  for (other : 0 .. N - 1) {
    assert(arrived[other] >= arrived[i])
  }
  other = 0;
  inside[i] = false
}

#ifdef BREAK_EARLY
#define has_got(i) true
#else
#define has_got(i) (got[i] == ALL)
#endif
#ifdef BREAK_ANSWER
#define has_answers(i) (sent[i] == ALL)
#else
#define has_answers(i) (done[i] == ALL)
#endif
#ifdef BREAK_HOLD
#define may_leave(i) true
#else
#define is_clear(i, r) (wire[AT(i, r)] == 0 && copy[AT(i, r)] == 0)
#define may_leave(i) (!resent[i] || (is_clear(i, 0) && is_clear(i, 1)))
#endif
#ifdef BREAK_GATE
#define is_due(i, r) true
#else
#define is_due(i, r) ((got[i] & ((1 << r) - 1)) == ((1 << r) - 1))
#endif

#define lacks_answer(i, r) ((sent[i] & ~done[i] & (1 << r)) != 0)
#define is_lost(i, r) (lacks_answer(i, r) && wire[AT(i, r)] == 0 && copy[AT(i, r)] == 0 && !dead[TO(i, r)])
#define is_late(i, r) (lacks_answer(i, r) && wire[AT(i, r)] != 0 && copy[AT(i, r)] == 0)

inline post(i, r) {
  if
  :: wire[AT(i, r)] != 0 -> copy[AT(i, r)] = wire[AT(i, r)]
  :: else
  fi;
  wire[AT(i, r)] = 1 + arrived[i] % EPOCHS
}

inline send_round(i, r) {
  sent[i] = sent[i] | (1 << r);
  post(i, r)
}

proctype Member(byte i) {
  do
  :: atomic { !dead[i] && !failed[i] && !inside[i] && arrived[i] < E ->
       arrived[i]++;
       inside[i] = true;
       got[i] = early[i];
       early[i] = 0;
       sent[i] = 0;
       done[i] = 0;
       resent[i] = false }
  :: atomic { inside[i] && (sent[i] & 1) == 0 -> send_round(i, 0) }
  :: atomic { inside[i] && (sent[i] & 2) == 0 && is_due(i, 1) -> send_round(i, 1) }
  // A time-out: the notification or its answer was lost, or (if it may) is only late.
  :: atomic { inside[i] && is_lost(i, 0) -> resent[i] = true; post(i, 0) }
  :: atomic { inside[i] && is_lost(i, 1) -> resent[i] = true; post(i, 1) }
  :: atomic { inside[i] && losses > 0 && is_late(i, 0) -> losses--; resent[i] = true; post(i, 0) }
  :: atomic { inside[i] && losses > 0 && is_late(i, 1) -> losses--; resent[i] = true; post(i, 1) }
  :: atomic { inside[i] && has_got(i) && has_answers(i) && may_leave(i) -> pass(i) }
#ifdef DEATH
  :: atomic { i == 0 && !dead[i] -> dead[i] = true; inside[i] = false }
  :: atomic { inside[i] && lacks_answer(i, 0) && dead[TO(i, 0)] -> fail(i) }
  :: atomic { inside[i] && lacks_answer(i, 1) && dead[TO(i, 1)] -> fail(i) }
  :: atomic { inside[i] && dead[FROM(i, 0)] && (got[i] & 1) == 0 -> fail(i) }
  :: atomic { inside[i] && dead[FROM(i, 1)] && (got[i] & 2) == 0 -> fail(i) }
#endif
  :: atomic { dead[i] || failed[i] || (!inside[i] && arrived[i] == E) -> break }
  od
}

// The epoch at which the member k has last passed.
#define LAST(k) (arrived[k] - (inside[k] -> 1 : 0))

inline receive(k, r, e) {
  if
  :: inside[k] && e == arrived[k] % EPOCHS -> got[k] = got[k] | (1 << r)
  :: else ->
       if
       :: (LAST(k) + EPOCHS - e) % EPOCHS < STALE && LAST(k) > 0
       :: else ->
            assert(e == (arrived[k] + 1) % EPOCHS || failed[k]);
#ifndef BREAK_NEXT
            early[k] = early[k] | (1 << r)
#endif
       fi
  fi
}

inline answer(i, r, e) {
  if
  :: inside[i] && e == arrived[i] % EPOCHS -> done[i] = done[i] | (1 << r)
  :: else
  fi
}

proctype Wire(byte i, r) {
  byte e;
end_wire:
  do
  :: atomic { wire[AT(i, r)] != 0 ->
       e = wire[AT(i, r)] - 1;
       wire[AT(i, r)] = 0;
       if
       :: dead[TO(i, r)]
       :: !dead[TO(i, r)] -> receive(TO(i, r), r, e); answer(i, r, e)
#if LOSS > 0
       :: losses > 0 -> losses--
       :: losses > 0 && !dead[TO(i, r)] -> losses--; receive(TO(i, r), r, e)
#endif
       fi;
       e = 0 }
  :: atomic { copy[AT(i, r)] != 0 ->
       e = copy[AT(i, r)] - 1;
       copy[AT(i, r)] = 0;
       if
       :: !dead[TO(i, r)] -> receive(TO(i, r), r, e); answer(i, r, e)
       :: true
       fi;
       e = 0 }
  od
}

proctype Word(byte i, k) {
end_word:
  do
  :: atomic { word[i * N + k] ->
       word[i * N + k] = false;
       if
       :: dead[k] || failed[k]
       :: !dead[k] && inside[k] ->
#ifdef BREAK_TELL
            failed[k] = true; inside[k] = false
#else
            fail(k)
#endif
       :: !dead[k] && !failed[k] && !inside[k] ->
#ifndef BREAK_POISON
            fail(k)
#else
            skip
#endif
       fi }
  od
}

init {
  byte i, k;
  atomic {
    for (i : 0 .. N - 1) {
      run Member(i);
      for (k : 0 .. R - 1) {
        run Wire(i, k)
      }
#ifdef DEATH
      for (k : 0 .. N - 1) {
        run Word(i, k)
      }
#endif
    }
    i = 0; k = 0
  }
}
