// Offers of one receiver to NS sources (docs/decisions/0015-large-data.md, "Offers"). Each source
// sends a stream of small and large messages to one context; large ones by REQUEST, or by ACCEPT if
// there is an offer. The receiver's application posts receives, cancels them, and takes unexpected
// messages. The library makes offers and revokes them.
//
// Each source has one mailbox for requests and one for offers. A large message has N dedicated
// messages; an offer allows W of them at once. Message numbers and offer numbers are modulo 4.
//
// Switches that break a rule; spin must find each: BREAK_REVOKE (the receiver takes the queue back
// without waiting for an answer), BREAK_KEPT (the sender is done when its card is, without the
// receiver's EXTEND), BREAK_BOUND (an offer is accepted for any message), BREAK_LEAVE (offers may
// take every queue).
#ifndef NS
#define NS 1
#endif
#ifndef NQ
#define NQ 3
#endif
#ifndef KEPT
#define KEPT 2  // queues that offers leave free
#endif
#ifndef N
#define N 2
#endif
#ifndef W
#define W 1
#endif
#define NEXT(n) ((n + 1) % 4)

mtype = { SMALL, REQUEST, ACCEPT, CLOSED, REVOKED, OFFER, REVOKE, GRANT, EXTEND, PARK };

typedef Up { chan c = [6] of { mtype, byte } };    // number of the message, or of the offer
typedef Down { chan c = [6] of { mtype, byte, byte } };  // number, total or message number
typedef Net { chan c = [N] of { byte, byte } };    // number of the message, its part
Up up[NS];
Down down[NS];
Net ask[NS];    // the mailbox for requests
Net given[NS];  // the mailbox for offers

#define IDLE 0
#define ASKED 1
#define SENDING 2
#define DRAINING 3
typedef Sender {
  byte number;   // number of the next message
  bool offered;  // an offer is held
  byte offer; byte bound;
  byte state;    // state of the large message under way, whose number is `number`
  bool accepted; // it uses the offer's mailbox
  bool kept;     // the receiver has confirmed it with EXTEND
  byte total; byte posted; byte out
}
Sender snd[NS];

typedef Receiver {
  byte expected;  // number of the next message
  bool posted;    // a receive is posted
  byte offer;     // number of the last offer
  byte open;      // 0: none, 1: open, 2: revoked
  bool opened;    // the offer's queue is held: by the offer, or by its transfer
  bool programmed;
  bool parked;    // waits for CLOSED
  byte unexpected;  // unexpected messages held: at most one is large, since the sender waits until it ends
  bool large;     // the last of them is large
  bool waits;     // a matched request waits for a queue
  bool asked;     // the queue of requests is held
  byte done; byte ahead
}
Receiver rcv[NS];
byte freeq = NQ;
byte offers;

#define say_up(i, what, n) assert(nfull(up[i].c)); up[i].c!what, n
#define say_down(i, what, n, total) assert(nfull(down[i].c)); down[i].c!what, n, total

proctype Send(byte s) {
  do
  // Numbers are modulo 4: send nothing whose number an old offer still on its way could match.
  :: atomic { snd[s].state == IDLE && len(up[s].c) + rcv[s].unexpected < 3 &&
              !down[s].c??[OFFER, _, eval((snd[s].number + 1) % 4)] ->
       if
       :: say_up(s, SMALL, snd[s].number);
          snd[s].number = NEXT(snd[s].number);
#ifndef BREAK_BOUND
          snd[s].offered = false
#endif
       :: !snd[s].offered ->
          say_up(s, REQUEST, snd[s].number);
          snd[s].state = ASKED
       :: snd[s].offered ->
#ifndef BREAK_BOUND
          assert(snd[s].bound == snd[s].number);
#endif
          say_up(s, ACCEPT, snd[s].number);
          snd[s].offered = false;
          snd[s].accepted = true;
          snd[s].total = W;
          snd[s].state = SENDING
       fi }
  od
}

inline finished(s) {
  snd[s].state = IDLE;
  snd[s].accepted = false;
  snd[s].kept = false;
  snd[s].total = 0;
  snd[s].posted = 0;
  snd[s].number = NEXT(snd[s].number)
}

proctype Post(byte s) {
  do
  :: atomic { snd[s].state == SENDING && snd[s].posted < snd[s].total ->
       if
       :: snd[s].accepted -> given[s].c!snd[s].number, snd[s].posted
       :: else -> ask[s].c!snd[s].number, snd[s].posted
       fi;
       snd[s].posted++;
       snd[s].out++ }
  :: atomic { snd[s].state == SENDING && snd[s].posted == N && snd[s].out == 0 &&
#ifdef BREAK_KEPT
              true ->
#else
              (snd[s].kept || !snd[s].accepted) ->
#endif
       finished(s) }
  :: atomic { snd[s].state == DRAINING && snd[s].out == 0 ->
       say_up(s, CLOSED, snd[s].number);
       snd[s].state = ASKED;
       snd[s].accepted = false;
       snd[s].total = 0;
       snd[s].posted = 0 }
  od
}

proctype HearReceiver(byte s) {
  mtype what;
  byte n, x;
  do
  :: atomic { down[s].c?what, n, x ->
       if
       :: what == OFFER ->
            assert(!snd[s].offered);
            snd[s].offer = n;
            if
            :: x == snd[s].number && snd[s].state == IDLE -> snd[s].offered = true; snd[s].bound = x
            :: else  // too late: the message that refuses it is on the way
            fi
       :: what == REVOKE ->
            assert(snd[s].offer == n);
            if
            :: snd[s].offered -> snd[s].offered = false; say_up(s, REVOKED, n)
            :: else  // ACCEPT, or the message that refuses it, is on the way
            fi
       :: what == GRANT ->
            assert(snd[s].state == ASKED && n == snd[s].number);
            snd[s].state = SENDING;
            snd[s].total = x
       :: what == EXTEND ->
            assert(snd[s].state == SENDING && n == snd[s].number && x >= snd[s].total);
            snd[s].total = x;
            snd[s].kept = true
       :: what == PARK ->
            assert(snd[s].state == SENDING && n == snd[s].number && snd[s].accepted);
            assert(!snd[s].kept);
            snd[s].state = DRAINING
       fi;
       what = 0; n = 0; x = 0 }
  od
}

// The application gets the message that its receive was posted for.
inline matched_small(s) { rcv[s].posted = false }

inline free_offer(s) {
  rcv[s].open = 0;
  rcv[s].opened = false;
  offers--;
  freeq++
}

// The message that the offer was for arrived without ACCEPT: the offer is refused.
inline refused(s) {
  if
  :: rcv[s].open != 0 -> assert(empty(given[s].c)); free_offer(s)
  :: else
  fi
}

proctype HearSender(byte s) {
  mtype what;
  byte n;
  do
  // The sender waits while a large message is unmatched, so at most one has to be remembered.
  :: atomic { up[s].c?what, n ->
       if
       :: what == SMALL ->
            assert(n == rcv[s].expected);
            rcv[s].expected = NEXT(n);
#ifdef BREAK_REVOKE
            if :: rcv[s].open == 1 -> refused(s) :: else -> rcv[s].open = 0 fi;
#else
            refused(s);
#endif
            if
            :: rcv[s].posted && rcv[s].unexpected == 0 -> rcv[s].posted = false
            :: else -> rcv[s].unexpected++
            fi
       :: what == REQUEST ->
            assert(n == rcv[s].expected);
            rcv[s].expected = NEXT(n);
#ifdef BREAK_REVOKE
            if :: rcv[s].open == 1 -> refused(s) :: else -> rcv[s].open = 0 fi;
#else
            refused(s);
#endif
            if
            :: rcv[s].posted && rcv[s].unexpected == 0 -> rcv[s].posted = false; rcv[s].waits = true
            :: else -> rcv[s].unexpected++; rcv[s].large = true
            fi
       :: what == ACCEPT ->
            assert(n == rcv[s].expected);
            assert(rcv[s].open != 0);
            assert(rcv[s].opened);
            rcv[s].expected = NEXT(n);
            rcv[s].open = 0;
            offers--;
            if
            :: rcv[s].posted && rcv[s].unexpected == 0 ->
                 rcv[s].posted = false;
                 rcv[s].programmed = true;
                 rcv[s].done = 0;
                 rcv[s].ahead = W;
                 say_down(s, EXTEND, n, W)
            :: else ->
                 rcv[s].parked = true;
                 rcv[s].opened = false;  // the ring stops; the pair is in quarantine
                 freeq++;
                 rcv[s].unexpected++;
                 rcv[s].large = true;
                 say_down(s, PARK, n, 0)
            fi
       :: what == CLOSED ->
            assert(rcv[s].parked);
            assert(empty(given[s].c));
            rcv[s].parked = false
       :: what == REVOKED ->
#ifndef BREAK_REVOKE
            assert(rcv[s].open == 2 && rcv[s].offer == n && empty(given[s].c));
            free_offer(s)
#else
            rcv[s].open = 0
#endif
       fi;
       what = 0; n = 0 }
  od
}

proctype Application(byte s) {
  do
  :: atomic { !rcv[s].posted && rcv[s].unexpected == 0 -> rcv[s].posted = true }
  :: atomic { rcv[s].posted && rcv[s].open == 1 -> rcv[s].posted = false }  // the receive is cancelled
  // Take unexpected messages, oldest first; the last of them may be large.
  :: atomic { rcv[s].unexpected > 1 || (rcv[s].unexpected == 1 && !rcv[s].large) ->
       rcv[s].unexpected-- }
  :: atomic { rcv[s].unexpected == 1 && rcv[s].large && !rcv[s].parked ->
       rcv[s].unexpected = 0; rcv[s].large = false; rcv[s].waits = true }
  od
}

proctype Serve(byte s) {
  do
  :: atomic { rcv[s].waits && !rcv[s].parked && freeq > 0 ->
       assert(!rcv[s].asked);
       rcv[s].waits = false;
       rcv[s].asked = true;
       freeq--;
       rcv[s].done = 0;
       rcv[s].ahead = N;
       say_down(s, GRANT, (rcv[s].expected + 3) % 4, N) }
  od
}

#ifdef BREAK_LEAVE
#define may_offer (freeq > 0)
#else
#define may_offer (freeq > KEPT)
#endif

proctype Offer(byte s) {
  do
  :: atomic { rcv[s].posted && rcv[s].unexpected == 0 && rcv[s].open == 0 && !rcv[s].opened &&
              !rcv[s].parked && !rcv[s].waits && !rcv[s].asked && len(down[s].c) < 3 && may_offer ->
       rcv[s].open = 1;
       rcv[s].opened = true;
       rcv[s].offer = NEXT(rcv[s].offer);
       freeq--;
       offers++;
       assert(offers <= NQ - KEPT);
       say_down(s, OFFER, rcv[s].offer, rcv[s].expected) }
  // The library revokes the offer, for any reason.
  :: atomic { rcv[s].open == 1 ->
       rcv[s].open = 2;
       say_down(s, REVOKE, rcv[s].offer, 0);
#ifdef BREAK_REVOKE
       rcv[s].opened = false;
       offers--;
       freeq++
#endif
     }
  od
}

inline landed(s) {
  rcv[s].done++;
  if
  :: rcv[s].done == N ->
       rcv[s].done = 0;
       rcv[s].ahead = 0;
       freeq++;
       if
       :: rcv[s].programmed -> rcv[s].programmed = false; rcv[s].opened = false
       :: else -> rcv[s].asked = false
       fi
  :: else
  fi
}

proctype Land(byte s) {
  byte n, part;
  do
  :: atomic { nempty(ask[s].c) ->
       ask[s].c?n, part;
       assert(rcv[s].asked && n == (rcv[s].expected + 3) % 4);
       assert(part == rcv[s].done);
       snd[s].out--;
       landed(s);
       n = 0; part = 0 }
  // If the queue is open but empty, the card answers RETRY: the message stays in the network. If it
  // is closed, the message lands in the shared queue and is dropped; this must happen only when it
  // is parked.
  :: atomic { nempty(given[s].c) && (!rcv[s].opened || rcv[s].programmed && rcv[s].done < rcv[s].ahead) ->
       given[s].c?n, part;
       snd[s].out--;
       if
       :: rcv[s].opened ->
            assert(n == (rcv[s].expected + 3) % 4);
            assert(part == rcv[s].done);
            landed(s)
       :: else -> assert(rcv[s].parked)
       fi;
       n = 0; part = 0 }
  :: atomic { rcv[s].programmed && rcv[s].ahead < N && rcv[s].done == rcv[s].ahead ->
       rcv[s].ahead = (rcv[s].done + W < N -> rcv[s].done + W : N);
       say_down(s, EXTEND, (rcv[s].expected + 3) % 4, rcv[s].ahead) }
  od
}

init {
  byte s;
  atomic {
    for (s : 0 .. NS - 1) {
      run Send(s);
      run Post(s);
      run HearReceiver(s);
      run HearSender(s);
      run Application(s);
      run Serve(s);
      run Offer(s);
      run Land(s)
    }
    s = 0
  }
}

// A revoked offer ends, and so does a large message.
ltl back { [] (rcv[0].open == 2 -> <> (rcv[0].open != 2)) }
ltl ends { [] (snd[0].state != IDLE -> <> (snd[0].state == IDLE)) }
