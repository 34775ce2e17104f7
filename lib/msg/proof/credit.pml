// Credits of two peers that send to each other (docs/decisions/0015-large-data.md, "Credits"): data
// up to a share, headers beyond it, control messages, and the messages that only announce a limit.
// Each application receives batches in any order, and takes nothing before a batch is complete: the
// worst case of receiving in reverse order.
//
// A message carries the growth of a limit instead of the total. The stream is in order and loses
// nothing, so both are equivalent.
//
// Switches that break a rule; spin must find each: BREAK_GROW (the record window never grows),
// BREAK_TELL (control limits are announced only in other messages), BREAK_DUE (only more than half
// a window is announced), BREAK_LOOK (due() is checked only when something is freed, not when
// messages arrive), BREAK_SHARE (data credits are returned on arrival, not when the application
// takes the message).
#ifndef S
#define S 1  // share of data
#endif
#ifndef K
#define K 2  // control credits; a REQUEST leaves one for answers
#endif
#ifndef H
#define H 1  // records
#endif
#ifndef NB
#define NB 3  // messages of a batch
#endif
#define HALF(w) ((w + 1) / 2)
#define Q(p) (1 - (p))

// Most unread messages that only announce the limit of one class. The code has no such bound; the
// model proves it.
#define UNREAD 2
mtype = { DATA, REQUEST, GRANT, CREDIT, RECORDS, CONTROL };
// The byte is the growth of a limit: of control in GRANT and CONTROL, of records in RECORDS, else
// of data.
typedef Stream { chan c = [S + K + 3 * UNREAD] of { mtype, byte } };
Stream to[2];

typedef Peer {
  // As a sender: credits left.
  byte data; byte records; byte control;
  byte grants;       // answers that wait to be sent
  // As a receiver: credits not announced (u...), and announced but not used (k...).
  byte udata; byte urecords; byte ucontrol;
  byte kdata; byte krecords; byte kcontrol;
  byte free_records; // free records
  byte extra;        // records lent
  byte held_data; byte held_headers;
  bool look;         // only with BREAK_LOOK: something was freed
  byte batch;        // messages of the batch that the application has not taken
  // Buffers of this peer in use.
  byte in_data; byte in_control; byte in_credits; byte in_records; byte in_controls
}
Peer at[2];

inline send(p, type, untold, known) {
  assert(nfull(to[Q(p)].c));
  to[Q(p)].c!type, untold;
  known = known + untold;
  untold = 0
}

#define can_data(p) (at[p].data > 0)
#define can_header(p) (at[p].records > 0 && at[p].control > 1)
#ifdef ONEWAY
#define talks(p) (p == 0)
#else
#define talks(p) (true)
#endif
#ifdef BREAK_DUE
#define due(untold, known, w) (untold > HALF(w))
#else
#define due(untold, known, w) (untold > 0 && (untold >= HALF(w) || untold > known))
#endif
#ifdef BREAK_LOOK
#define looks(p) (at[p].look)
#define came_free(p) at[p].look = true
#else
#define looks(p) (true)
#define came_free(p) skip
#endif

// Progress label: peer 0 must send forever.
inline went(p) {
  if
  :: p == 0 -> progress: skip
  :: else
  fi
}

proctype SendUser(byte p) {
  do
  :: atomic { can_data(p) ->
       at[p].data--;
       at[Q(p)].in_data++;
       assert(at[Q(p)].in_data <= S);
       send(p, DATA, at[p].udata, at[p].kdata) };
     went(p)
  :: atomic { !can_data(p) && can_header(p) ->
       at[p].records--;
       at[p].control--;
       at[Q(p)].in_control++;
       assert(at[Q(p)].in_control <= K);
       send(p, REQUEST, at[p].udata, at[p].kdata) };
     went(p)
  od
}

proctype SendControl(byte p) {
  do
  :: atomic { at[p].grants > 0 && at[p].control > 0 ->
       at[p].grants--;
       at[p].control--;
       at[Q(p)].in_control++;
       assert(at[Q(p)].in_control <= K);
       send(p, GRANT, at[p].ucontrol, at[p].kcontrol) }
  od
}

proctype Tell(byte p) {
  do
  :: atomic { looks(p) && due(at[p].udata, at[p].kdata, S) ->
       at[Q(p)].in_credits++;
       assert(at[Q(p)].in_credits <= UNREAD);
       send(p, CREDIT, at[p].udata, at[p].kdata) }
  :: atomic { looks(p) && due(at[p].urecords, at[p].krecords, H) ->
       at[Q(p)].in_records++;
       assert(at[Q(p)].in_records <= UNREAD);
       send(p, RECORDS, at[p].urecords, at[p].krecords) }
#ifdef BREAK_LOOK
  :: atomic { at[p].look && !due(at[p].udata, at[p].kdata, S) &&
              !due(at[p].urecords, at[p].krecords, H) -> at[p].look = false }
#endif
#ifndef BREAK_TELL
  :: atomic { due(at[p].ucontrol, at[p].kcontrol, K) ->
       at[Q(p)].in_controls++;
       assert(at[Q(p)].in_controls <= UNREAD);
       send(p, CONTROL, at[p].ucontrol, at[p].kcontrol) }
#endif
  od
}

inline read_control(p) {
  at[p].kcontrol--;
  at[p].in_control--;
  at[p].ucontrol++
}

proctype Read(byte p) {
  mtype type;
  byte grown;
  do
  :: atomic { to[p].c?type, grown ->
       if
       :: type == GRANT || type == CONTROL -> at[p].control = at[p].control + grown
       :: type == RECORDS -> at[p].records = at[p].records + grown
       :: else -> at[p].data = at[p].data + grown
       fi;
       if
       :: type == DATA ->
            at[p].kdata--;
#ifdef BREAK_SHARE
            at[p].udata++;
#endif
            at[p].held_data++
       :: type == REQUEST ->
            read_control(p);
            at[p].krecords--;
            assert(at[p].free_records > 0);
            at[p].free_records--;
            at[p].held_headers++
       :: type == GRANT -> read_control(p)
       :: type == CREDIT -> at[p].in_credits--
       :: type == RECORDS -> at[p].in_records--
       :: type == CONTROL -> at[p].in_controls--
       fi;
       type = 0; grown = 0 }
  od
}

// A record is freed. A lent one is repaid first.
inline free_record(p) {
  if
  :: at[p].extra > 0 -> at[p].extra--
  :: else -> at[p].free_records++; at[p].urecords++
  fi;
  came_free(p)
}

proctype Receive(byte p) {
  do
  :: atomic { at[p].batch == 0 && at[p].held_data + at[p].held_headers >= NB -> at[p].batch = NB }
#ifndef BREAK_GROW
  // A receive is posted that matches no held message, and no further header can arrive: lend
  // records.
  :: atomic { at[p].batch == 0 && at[p].held_data + at[p].held_headers < NB &&
              at[p].free_records == 0 ->
       at[p].free_records = H;
       at[p].urecords = at[p].urecords + H;
       at[p].extra = at[p].extra + H }
#endif
  :: atomic { at[p].batch > 0 && at[p].held_data > 0 ->
       at[p].batch--;
       at[p].held_data--;
       at[p].in_data--;
#ifndef BREAK_SHARE
       at[p].udata++;
#endif
       came_free(p)
     }
  // The next receive is posted once the grant for the last one was sent.
  :: atomic { at[p].batch > 0 && at[p].held_headers > 0 && at[p].grants == 0 ->
       at[p].batch--;
       at[p].held_headers--;
       free_record(p);
       at[p].grants++ }
  od
}

init {
  byte p;
  atomic {
    for (p : 0 .. 1) {
      at[p].data = S;
      at[p].records = H;
      at[p].control = K;
      at[p].kdata = S;
      at[p].krecords = H;
      at[p].kcontrol = K;
      at[p].free_records = H
    }
    for (p : 0 .. 1) {
      if :: talks(p) -> run SendUser(p); run Receive(Q(p)); run SendControl(Q(p)) :: else fi;
      run Tell(p);
      run Read(p)
    }
    p = 0
  }
}
