// Shares of a pool of buffers (docs/decisions/0015-large-data.md, "Credits"): one receiver with T
// buffers and NP peers that join, send, are recalled, and one of which dies once and joins again.
// Growing and telling are one here; that totals are late is in credit.pml.
//
// Broken rules, which must be found: BREAK_RECALL (a recalled buffer is given away before RETURNED),
// BREAK_DEBT (what a peer could not give back is forgotten).
#ifndef NP
#define NP 2
#endif
#ifndef T
#define T 2
#endif

mtype = { DATA, RETURNED, LIMIT, RECALL };

typedef Up { chan c = [T + 1] of { mtype, byte } };
typedef Down { chan c = [T + 2] of { mtype, byte } };
Up up[NP];
Down down[NP];
byte credit[NP];     // at the peer
byte committed[NP];  // at the receiver: what it has told, and not got back
byte held[NP];
byte debt[NP];
bool recalled[NP];
bool joined[NP];
byte pool = T;

proctype Peer(byte i) {
  do
  :: atomic { joined[i] && credit[i] > 0 -> credit[i]--; up[i].c!DATA, 0 }
  :: atomic { down[i].c?[LIMIT, _] -> down[i].c?LIMIT, _; credit[i]++ }
  :: atomic { down[i].c?[RECALL, _] ->
       down[i].c?RECALL, _;
       if
       :: credit[i] > 0 -> credit[i]--; up[i].c!RETURNED, 1
       :: else -> up[i].c!RETURNED, 0
       fi }
  od
}

inline give(i) { assert(nfull(down[i].c)); down[i].c!LIMIT, 1 }

proctype Hear(byte i) {
  byte n;
  do
  :: atomic { up[i].c?[DATA, _] ->
       up[i].c?DATA, n;
       held[i]++;
       assert(held[0] + held[1] <= T);  // there was a buffer for it
       n = 0 }
  :: atomic { up[i].c?[RETURNED, _] ->
       up[i].c?RETURNED, n;
       recalled[i] = false;
       committed[i] = committed[i] - n;
#ifdef BREAK_RECALL
       if :: n == 0 -> debt[i]++ :: else fi;
#else
       pool = pool + n;
#ifndef BREAK_DEBT
       if :: n == 0 -> debt[i]++ :: else fi;
#endif
#endif
       n = 0 }
  od
}

proctype Application(byte i) {
  do
  :: atomic { held[i] > 0 ->
       held[i]--;
       if
       :: debt[i] > 0 ->
            debt[i]--;
            committed[i]--;
#ifndef BREAK_RECALL
            pool++
#endif
       :: else -> give(i)
       fi }
  od
}

#define poor(i) (joined[i] && committed[i] == 0)

proctype Share(byte i) {
  do
  :: atomic { !joined[i] -> joined[i] = true }
  // Who has nothing comes first.
  :: atomic { joined[i] && pool > 0 && (committed[i] == 0 || !poor(1 - i)) ->
       pool--;
       committed[i]++;
       give(i) }
  // Another has nothing, and there is nothing left.
  :: atomic { joined[i] && pool == 0 && poor(1 - i) && committed[i] - debt[i] > 1 && !recalled[i] ->
       recalled[i] = true;
       assert(nfull(down[i].c));
       down[i].c!RECALL, 1;
#ifdef BREAK_RECALL
       pool++
#endif
     }
  od
}

// Peer 0 dies. Its messages leave the network (the rest of its pairs), then it may join again.
proctype Death() {
  byte n;
  atomic {
    joined[0] ->
    joined[0] = false;
    do :: up[0].c?_, n :: empty(up[0].c) -> break od;
    do :: down[0].c?_, n :: empty(down[0].c) -> break od;
    credit[0] = 0;
    pool = pool + committed[0];  // what it had, and what is held of it, which is dropped
#ifdef BREAK_RECALL
    pool = pool - (recalled[0] -> 1 : 0);
#endif
    committed[0] = 0;
    held[0] = 0;
    debt[0] = 0;
    recalled[0] = false;
    n = 0
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. NP - 1) {
      run Peer(i);
      run Hear(i);
      run Application(i);
      run Share(i)
    }
    run Death();
    i = 0
  }
}

// Nothing is given twice, and who joins gets a share.
#define sum (committed[0] + committed[1] + pool)
ltl exact { [] (sum == T) }
ltl shared { [] (joined[1] && committed[1] == 0 -> <> (committed[1] > 0)) }
