// Shares of a pool of buffers (docs/decisions/0015-large-data.md, "Credits"): one receiver with T
// buffers and NP peers that join, send, ask where they have no credit, and one of which dies once
// and joins again. A share only grows. Growing and telling are one here; that totals are late is in
// credit.pml.
//
// Broken rules, which must be found: BREAK_HELD (what the application still holds of a peer that
// died is given away), BREAK_STALE (what it held is told to the one who has come since), BREAK_ASK
// (who has no credit does not ask).
#ifndef NP
#define NP 2
#endif
#ifndef T
#define T 2
#endif

mtype = { DATA, ASK, LIMIT };

typedef Up { chan c = [T + 1] of { mtype } };
typedef Down { chan c = [T + 1] of { mtype } };
Up up[NP];
Down down[NP];
byte credit[NP];     // at the peer
byte committed[NP];  // at the receiver: what it has told of, and what is here
byte held[NP];       // by the application, of the session of now
byte stale;          // and of one that is over
byte pool = T;
bool joined[NP];
bool wants[NP];  // the peer has a message that is not at its receiver
bool asked[NP];

proctype Peer(byte i) {
  do
  :: atomic { joined[i] && !wants[i] -> wants[i] = true }
  :: atomic { joined[i] && wants[i] && !asked[i] && credit[i] > 0 ->
       credit[i]--;
       wants[i] = false;
       assert(nfull(up[i].c));
       up[i].c!DATA }
#ifndef BREAK_ASK
  :: atomic { joined[i] && wants[i] && !asked[i] && credit[i] == 0 ->
       asked[i] = true;
       assert(nfull(up[i].c));
       up[i].c!ASK }
#endif
  :: atomic { down[i].c?[LIMIT] -> down[i].c?LIMIT; credit[i]++ }
  od
}

inline give(i) { assert(nfull(down[i].c)); down[i].c!LIMIT }

proctype Hear(byte i) {
  do
  :: atomic { up[i].c?[DATA] ->
       up[i].c?DATA;
       held[i]++;
       assert(held[0] + held[1] + stale <= T) }  // there was a buffer for it
  // A dedicated queue moves the payload. A sender that had to ask gets more, if there is more.
  :: atomic { up[i].c?[ASK] ->
       up[i].c?ASK;
       asked[i] = false;
       wants[i] = false;
       if
       :: pool > 0 -> pool--; committed[i]++; give(i)
       :: else
       fi }
  od
}

proctype Application(byte i) {
  do
  :: atomic { held[i] > 0 -> held[i]--; give(i) }
  :: atomic { stale > 0 ->
       stale--;
#ifdef BREAK_STALE
       if :: joined[0] -> give(0) :: else -> pool++ fi
#else
#ifndef BREAK_HELD
       pool++
#endif
#endif
     }
  od
}

// A newcomer gets some of what is free, which may be nothing.
proctype Join(byte i) {
  do
  :: atomic { !joined[i] ->
       joined[i] = true;
       do
       :: pool > 0 -> pool--; committed[i]++; give(i)
       :: break
       od }
  od
}

// Peer 0 dies. Its messages leave the network (the rest of its pairs), then it may join again.
proctype Death() {
  atomic {
    joined[0] ->
    joined[0] = false;
    do :: up[0].c?_ :: empty(up[0].c) -> break od;
    do :: down[0].c?_ :: empty(down[0].c) -> break od;
    credit[0] = 0;
    wants[0] = false;
    asked[0] = false;
#ifdef BREAK_HELD
    pool = pool + committed[0];
#else
    pool = pool + committed[0] - held[0];
#endif
    stale = stale + held[0];
    committed[0] = 0;
    held[0] = 0
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. NP - 1) {
      run Peer(i);
      run Hear(i);
      run Application(i);
      run Join(i)
    }
    run Death();
    i = 0
  }
}

// Nothing is given twice or lost, and each message comes to its receiver, share or none.
#define sum (committed[0] + committed[1] + stale + pool)
ltl exact { [] (sum == T) }
ltl served { [] (wants[1] -> <> !wants[1]) }
