// Shares of a pool of buffers (docs/decisions/0015-large-data.md, "Credits"): one receiver with T
// buffers, and NP peers that join, send, and send a request if they have no credit. Peer 0 dies
// once and joins again. A share only grows. A limit is announced as soon as it grows; credit.pml
// models late announcements.
//
// Switches that break a rule; spin must find each: BREAK_HELD (buffers that the application holds
// of a dead peer are given away), BREAK_STALE (credits of a dead peer's buffers are given to its
// successor), BREAK_ASK (a peer without credit sends no request).
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
byte credit[NP];     // of the peer
byte committed[NP];  // of the receiver: credits given and not used, plus messages held
byte held[NP];       // messages of this session that the application holds
byte stale;          // messages of an ended session that the application holds
byte pool = T;
bool joined[NP];
bool wants[NP];  // the peer has a message that has not arrived
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
       assert(held[0] + held[1] + stale <= T) }  // it needs a buffer
  // A dedicated queue moves the payload. The sender had to ask, so its share grows if buffers are
  // left.
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

// A new peer gets some of the free buffers, possibly none.
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

// Peer 0 dies. Its messages leave the network while its pairs rest; then it may join again.
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

// No buffer is given twice or lost, and each message arrives, with or without a share.
#define sum (committed[0] + committed[1] + stale + pool)
ltl exact { [] (sum == T) }
ltl served { [] (wants[1] -> <> !wants[1]) }
