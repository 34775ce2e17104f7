// Assignment of queues, grants, and how they end (docs/decisions/0015-large-data.md, "Large data"
// and "Which queue"). One receiver, NS sources with NT transfers each, NQ queues, NM mailboxes.
//
// Each activity is a process of its own, so that weak fairness gives each its turn. The control
// messages of each direction are a channel. Dedicated messages have channels beside it, and may
// leave these at any time. The sender's card has the answer as soon as a message has landed; the
// sender reads it at any later time.
//
// Switches: ABORTS (either side stops transfers; the sender may ask to be granted again), DEATH
// (source 0 dies once and restarts). Switches that break a rule; spin must find each:
// BREAK_QUARANTINE, BREAK_CLOSED, BREAK_REST, BREAK_RING, BREAK_DONE.
#ifndef NS
#define NS 2
#endif
#ifndef NT
#define NT 1
#endif
#ifndef NQ
#define NQ 1
#endif
#ifndef NM
#define NM 1
#endif
#ifndef N
#define N 2  // messages of a transfer
#endif
#ifndef W
#define W 2  // window
#endif

#define X(s, t) ((s) * NT + (t))  // index of a transfer
#define P(s, m) ((s) * NM + (m))  // index of a pair
#define NONE 15
#define INC(a) a = (a + 1) % 4

mtype = { REQUEST, CLOSED, GRANT, EXTEND, ABORT, DONE };

chan up[NS] = [4 * NT] of { mtype, byte, byte, bool };    // transfer, attempt, again
chan down[NS] = [4 * NT] of { mtype, byte, byte, byte, byte };  // transfer, attempt, mailbox, total
chan net[NS * NM] = [W] of { byte, byte };                // transfer, attempt

// The sender's side.
#define IDLE 0
#define REQUESTED 1
#define SENDING 2
#define DRAINING 3
byte sst[NS * NT];
byte sa[NS * NT];       // attempt; keeps counting in the next transfer, since ids are never reused
byte sposted[NS * NT];
byte sgranted[NS * NT];
byte sout[NS * NT];     // posted and not answered
byte smb[NS * NT];
bool sagain[NS * NT];   // in DRAINING: the `again` that CLOSED will carry
bool scont[NS * NT];    // in REQUESTED: set after CLOSED with `again`

// The receiver's side.
#define WAITING 1
#define RECEIVING 2
#define ABORTING 3
byte rst[NS * NT];      // 0: none
byte ra[NS * NT];
byte rposted[NS * NT];
byte rdone[NS * NT];
byte rmb[NS * NT];

#define FREE 0
#define USED 1
#define QUARANTINE 2
#define REST 3
byte pair[NS * NM];
byte owner[NS * NM];    // in USED: the transfer
byte freeq = NQ;
chan wait[NS] = [NT] of { byte };  // transfers, in order
chan ring = [NS] of { byte };
bool inring[NS];
bool dead[NS];

byte used;  // queues in use, for the assertion

inline free_mailbox(s, m) {
  m = 0;
  do
  :: m < NM && pair[P(s, m)] != FREE -> m++
  :: else -> break
  od
}

// Put a source into the ring if it has a waiting request and a free mailbox.
inline look(s, m) {
  free_mailbox(s, m);
  if
  :: nempty(wait[s]) && m < NM && !inring[s] -> ring!s; inring[s] = true
  :: else
  fi;
  m = 0
}

inline unwait(s, x) {
  if
  :: wait[s]??[eval(x)] -> wait[s]??eval(x)
  :: else
  fi
}

inline release(p, to) {
  pair[p] = to;
  owner[p] = 0;
  used--;
  freeq++
}

inline forget(x) {
  rst[x] = 0;
  rposted[x] = 0;
  rdone[x] = 0;
  rmb[x] = 0
}

inline idle(x) {
  sst[x] = IDLE;
  sposted[x] = 0;
  sgranted[x] = 0;
  sout[x] = 0;
  smb[x] = 0;
  sagain[x] = false;
  scont[x] = false;
  INC(sa[x])
}

inline drain(x, again) {
  sst[x] = DRAINING;
  sgranted[x] = 0;
  sagain[x] = again
}

inline closed(s, x, attempt, again) {
  assert(nfull(up[s]));
  up[s]!CLOSED, x, attempt, again
}

// Whether a message of the attempt before the last is in the stream: attempts are numbered modulo
// 4, so a new transfer must wait for that.
#define stale(s, x) (down[s]??[_, eval(x), eval((sa[x] + 2) % 4), _, _])

proctype SenderNew(byte s; byte x) {
  do
  // A transfer's index is reused once the receiver has forgotten it. The bounds on len() stand for
  // credits.
  :: atomic { !dead[s] && sst[x] == IDLE && rst[x] == 0 &&
                        len(up[s]) < 2 && len(down[s]) < 2 && !stale(s, x) ->
       sst[x] = REQUESTED;
       up[s]!REQUEST, x, sa[x], false }
  od
}

proctype SenderPost(byte s; byte x) {
  do
  :: atomic { sst[x] == SENDING && sposted[x] < sgranted[x] ->
       assert(nfull(net[P(s, smb[x])]));
       net[P(s, smb[x])]!x, sa[x];
       sposted[x]++;
       sout[x]++ }
  :: atomic { sst[x] == SENDING && sposted[x] == N && sout[x] == 0 -> idle(x) }
#ifdef BREAK_CLOSED
  :: atomic { sst[x] == DRAINING ->
#else
  :: atomic { sst[x] == DRAINING && sout[x] == 0 ->
#endif
       closed(s, x, sa[x], sagain[x]);
       if
       :: sagain[x] -> idle(x); sst[x] = REQUESTED; scont[x] = true
       :: else -> idle(x)
       fi }
  od
}

#ifdef ABORTS
proctype SenderStop(byte s; byte x) {
  bool again;
  do
  :: atomic { sst[x] == REQUESTED -> closed(s, x, sa[x], false); idle(x) }
  :: atomic { sst[x] == SENDING -> drain(x, false) }
  :: atomic { sst[x] == SENDING && sposted[x] > 0 -> drain(x, true) }  // a message is in doubt
#ifdef LIVE
  :: true -> skip  // the process may do nothing
#endif
  od
}
#endif

proctype SenderControl(byte s) {
  byte x, a, m, n;
  do
  :: atomic { down[s]?GRANT, x, a, m, n ->
       if
       :: sst[x] == REQUESTED && sa[x] == a ->
            sst[x] = SENDING; smb[x] = m; sgranted[x] = n; scont[x] = false
       :: else  // the sender has closed this attempt
       fi; x = 0; a = 0; m = 0; n = 0 }
  :: atomic { down[s]?EXTEND, x, a, m, n ->
       if
       :: sst[x] == SENDING && sa[x] == a -> assert(n > sgranted[x]); sgranted[x] = n
       :: else
       fi; x = 0; a = 0; m = 0; n = 0 }
  :: atomic { down[s]?DONE, x, a, m, n ->
       if
       :: sst[x] == REQUESTED && sa[x] == a -> idle(x)
       :: else
       fi; x = 0; a = 0; m = 0; n = 0 }
  :: atomic { down[s]?ABORT, x, a, m, n ->
       if
       :: sa[x] == a && sst[x] == REQUESTED -> closed(s, x, a, false); idle(x)
       :: sa[x] == a && sst[x] == SENDING -> drain(x, false)
       :: sa[x] == a && sst[x] == DRAINING -> sagain[x] = false
       :: sa[x] == a && sst[x] == IDLE -> assert(false)
       :: sa[x] == (a + 1) % 4 && sst[x] == REQUESTED && scont[x] -> idle(x)
       :: else -> closed(s, x, a, false)
       fi; x = 0; a = 0; m = 0; n = 0 }
  od
}

proctype ReceiverControl(byte s) {
  byte x, a, m;
  bool again;
  do
  :: atomic { !dead[s] && up[s]?[REQUEST, _, _, _] ->
       up[s]?REQUEST, x, a, again;
       assert(rst[x] == 0);
       rst[x] = WAITING; ra[x] = a;
       wait[s]!x; look(s, m);
       x = 0; a = 0; again = false }
  :: atomic { !dead[s] && up[s]?[CLOSED, _, _, _] ->
       up[s]?CLOSED, x, a, again;
       if
       :: ra[x] == a && rst[x] == WAITING -> unwait(s, x); forget(x)
       :: ra[x] == a && rst[x] == RECEIVING ->
            assert(empty(net[P(s, rmb[x])]));
            release(P(s, rmb[x]), FREE);
            forget(x);
            if
            :: again -> rst[x] = WAITING; INC(ra[x]); wait[s]!x
            :: else
            fi
       :: ra[x] == a && rst[x] == ABORTING ->
            if
            :: rmb[x] != NONE ->
#ifndef BREAK_QUARANTINE
                 assert(pair[P(s, rmb[x])] == QUARANTINE);
                 assert(empty(net[P(s, rmb[x])]));
                 pair[P(s, rmb[x])] = FREE
#else
                 skip
#endif
            :: else
            fi;
            forget(x)
       :: else ->
#ifndef BREAK_DONE
            if
            :: again -> down[s]!DONE, x, (a + 1) % 4, 0, 0
            :: else
            fi
#else
            skip
#endif
       fi;
       look(s, m);
       x = 0; a = 0; again = false }
  od
}

proctype Assign() {
  byte s, x, m;
  do
#ifdef BREAK_RING
  // Serve the source with the lowest number first.
  :: atomic { freeq > 0 && nempty(ring) ->
       if
       :: ring??[0] -> ring??0; s = 0
       :: else -> ring?s
       fi;
#else
  :: atomic { freeq > 0 && nempty(ring) ->
       ring?s;
#endif
       inring[s] = false;
       if
       :: nempty(wait[s]) ->
            wait[s]?x;
            assert(rst[x] == WAITING);
            free_mailbox(s, m);
            assert(m < NM);
            freeq--; used++;
            assert(used <= NQ);
            assert(pair[P(s, m)] == FREE);
            pair[P(s, m)] = USED; owner[P(s, m)] = x;
            rst[x] = RECEIVING; rmb[x] = m; rdone[x] = 0;
            rposted[x] = (N < W -> N : W);
            assert(nfull(down[s]));
            down[s]!GRANT, x, ra[x], m, rposted[x];
            look(s, m)
       :: else  // its waiting transfer was closed
       fi;
       s = 0; x = 0; m = 0 }
  od
}

// Give the sender's card the answer to a message. A dead sender gets none.
inline answer(x, attempt) {
  if
  :: sa[x] == attempt -> assert(sout[x] > 0); sout[x]--
  :: else -> assert(dead[s] || pair[p] == REST)
  fi
}

// A message leaves the network.
proctype Land(byte s; byte p) {
  byte x, a, m;
  do
  :: atomic { nempty(net[p]) ->
       net[p]?x, a;
       if
       :: pair[p] == USED ->
            assert(owner[p] == x && ra[x] == a && rst[x] == RECEIVING);
            assert(rposted[x] > rdone[x]);
            answer(x, a);
            rdone[x]++;
            if
            :: rdone[x] == N -> release(p, FREE); forget(x); look(s, m)
            :: else
            fi
       :: pair[p] == QUARANTINE -> answer(x, a)  // lands in the shared queue and is dropped
       :: pair[p] == REST                     // the sender has died
       :: pair[p] == FREE -> assert(false)
       fi;
       x = 0; a = 0 }
  :: atomic { pair[p] == REST && empty(net[p]) -> pair[p] = FREE; look(s, m) }
  od
}

proctype Extend(byte s; byte x) {
  do
  :: atomic { rst[x] == RECEIVING && rposted[x] < N && rdone[x] + W - rposted[x] >= (W + 1) / 2 ->
       rposted[x] = (rdone[x] + W < N -> rdone[x] + W : N);
       assert(nfull(down[s]));
       down[s]!EXTEND, x, ra[x], 0, rposted[x] }
  od
}

#ifdef ABORTS
proctype ReceiverStop(byte s; byte x) {
  do
  :: atomic { rst[x] == RECEIVING ->
       assert(nfull(down[s]));
       down[s]!ABORT, x, ra[x], 0, 0;
#ifdef BREAK_QUARANTINE
       release(P(s, rmb[x]), FREE);
#else
       release(P(s, rmb[x]), QUARANTINE);
#endif
       rst[x] = ABORTING; rposted[x] = 0; rdone[x] = 0 }
  :: atomic { rst[x] == WAITING ->
       assert(nfull(down[s]));
       down[s]!ABORT, x, ra[x], 0, 0;
       unwait(s, x);
       rst[x] = ABORTING; rmb[x] = NONE }
#ifdef LIVE
  :: true -> skip  // the process may do nothing
#endif
  od
}
#endif

#ifdef DEATH
inline flush_pair(p) {
  if
  :: pair[p] == USED ->
#ifdef BREAK_REST
       release(p, FREE)
#else
       release(p, REST)
#endif
  :: pair[p] == QUARANTINE -> pair[p] = REST
  :: else
  fi
}

proctype Death() {
  byte t, x, a, m, n;
  bool again;
  // Source 0 dies. Its messages stay in the network.
  atomic {
    dead[0] = true;
    do
    :: t < NT -> if :: sst[X(0, t)] != IDLE -> idle(X(0, t)) :: else fi; t++
    :: else -> break
    od;
    t = 0
  }
  // The receiver learns of it, and the old session's stream is discarded.
  atomic {
    do :: up[0]?_, x, a, again :: empty(up[0]) -> break od;
    do :: down[0]?_, x, a, m, n :: empty(down[0]) -> break od;
    do :: wait[0]?x :: empty(wait[0]) -> break od;
    do :: t < NT -> forget(X(0, t)); t++ :: else -> break od;
    t = 0;
    do :: t < NM -> flush_pair(P(0, t)); t++ :: else -> break od;
    t = 0; x = 0; a = 0; m = 0; n = 0;
    dead[0] = false
  }
}
#endif

init {
  byte s, i;
  atomic {
    run Assign();
    for (s : 0 .. NS - 1) {
      run SenderControl(s);
      run ReceiverControl(s);
      for (i : 0 .. NT - 1) {
        run SenderNew(s, X(s, i));
        run SenderPost(s, X(s, i));
        run Extend(s, X(s, i));
#ifdef ABORTS
        run SenderStop(s, X(s, i));
        run ReceiverStop(s, X(s, i));
#endif
      }
      for (i : 0 .. NM - 1) {
        run Land(s, P(s, i));
      }
    }
#ifdef DEATH
    run Death();
#endif
    s = 0; i = 0
  }
}

// Each request is served or ended, and each stop ends.
#define LAST (NS * NT - 1)
ltl served { [] (sst[LAST] == REQUESTED -> <> (sst[LAST] != REQUESTED)) }
ltl drained { [] (rst[LAST] == ABORTING -> <> (rst[LAST] != ABORTING)) }
