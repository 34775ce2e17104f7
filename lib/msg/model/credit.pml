// Credits of two peers that send to each other (docs/decisions/0015-large-data.md, "Credits"): data
// up to a share, headers past it, control, CREDIT and ACK. Each application receives in batches in
// any order, and takes nothing before a batch is complete: the worst case of "in reverse order".
//
// Totals are told by what they grew; the stream is in order and loses nothing, so that is the same.
//
// Broken rules, which must be found: BREAK_GROW (the record window never grows), BREAK_ACK (who is
// blocked does not send ACK), BREAK_CREDIT (CREDIT needs a control credit), BREAK_SHARE (data is
// given back when it was read, not when the application has it).
#ifndef S
#define S 1  // share of data
#endif
#ifndef K
#define K 1  // control
#endif
#ifndef H
#define H 1  // records
#endif
#ifndef NB
#define NB 3  // messages of a batch
#endif
#define HALF(w) ((w + 1) / 2)
#define Q(p) (1 - (p))

mtype = { DATA, REQUEST, GRANT, CREDIT, ACK };
// What grew of data, records, control; whether a CREDIT was read since the last one. (Of numbers, as
// the code has them, only this matters: at most one CREDIT is out.)
typedef Stream { chan c = [S + K + 2] of { mtype, byte, byte, byte, bool } };
Stream to[2];

typedef Peer {
  // As a sender: what may still go.
  byte data; byte records; byte control;
  byte grants;       // waiting to be sent
  // As a receiver: what was not told.
  byte udata; byte urecords; byte ucontrol;
  byte free_records; // places that a further header can have
  byte extra;        // places that are there for a while
  byte held_data; byte held_headers;
  byte batch;        // messages that the application still takes now
  // CREDIT and ACK.
  bool out;   // ours: not known to have been read
  bool owes;  // the peer's: read, and not told
  // Buffers of this peer that are taken.
  byte in_data; byte in_control; byte in_credit; byte in_ack
}
Peer at[2];

// Everything that goes tells the newest totals, and what CREDIT was read.
inline send(p, type) {
  assert(nfull(to[Q(p)].c));
  to[Q(p)].c!type, at[p].udata, at[p].urecords, at[p].ucontrol, at[p].owes;
  at[p].udata = 0;
  at[p].urecords = 0;
  at[p].ucontrol = 0;
  at[p].owes = false
}

#define can_data(p) (at[p].data > 0)
#define can_header(p) (at[p].records > 0 && at[p].control > 0)
#ifdef ONEWAY
#define talks(p) (p == 0)
#else
#define talks(p) (true)
#endif
#define blocked(p) ((talks(p) && !can_data(p) && !can_header(p)) || \
                    (at[p].grants > 0 && at[p].control == 0))
#define must_tell(p) (at[p].udata >= HALF(S) || at[p].urecords >= HALF(H) || \
                      at[p].ucontrol >= HALF(K))

// Peer 0 sends without end.
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
       send(p, DATA) };
     went(p)
  :: atomic { !can_data(p) && can_header(p) ->
       at[p].records--;
       at[p].control--;
       at[Q(p)].in_control++;
       assert(at[Q(p)].in_control <= K);
       send(p, REQUEST) };
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
       send(p, GRANT) }
  od
}

proctype Tell(byte p) {
  do
#ifdef BREAK_CREDIT
  :: atomic { must_tell(p) && !at[p].out && at[p].control > 0 ->
       at[p].control--;
#else
  :: atomic { must_tell(p) && !at[p].out ->
#endif
       at[p].out = true;
       at[Q(p)].in_credit++;
       assert(at[Q(p)].in_credit == 1);
       send(p, CREDIT) }
#ifndef BREAK_ACK
  :: atomic { at[p].owes && blocked(p) ->
       at[Q(p)].in_ack++;
       assert(at[Q(p)].in_ack == 1);
       send(p, ACK) }
#endif
  od
}

inline read_control(p) {
  at[p].in_control--;
  at[p].ucontrol++
}

proctype Read(byte p) {
  mtype type;
  byte d, r, k;
  bool read;
  do
  :: atomic { to[p].c?type, d, r, k, read ->
       at[p].data = at[p].data + d;
       at[p].records = at[p].records + r;
       at[p].control = at[p].control + k;
       if
       :: read -> assert(at[p].out); at[p].out = false
       :: else
       fi;
       if
       :: type == DATA ->
#ifdef BREAK_SHARE
            at[p].udata++;
#endif
            at[p].held_data++
       :: type == REQUEST ->
            read_control(p);
            assert(at[p].free_records > 0);
            at[p].free_records--;
            at[p].held_headers++
       :: type == GRANT -> read_control(p)
       :: type == CREDIT ->
            at[p].in_credit--;
            at[p].owes = true
#ifdef BREAK_CREDIT
            ; at[p].ucontrol++
#endif
       :: type == ACK -> at[p].in_ack--
       fi;
       type = 0; d = 0; r = 0; k = 0; read = false }
  od
}

// A place of a record comes free; what was there for a while goes first.
inline free_record(p) {
  if
  :: at[p].extra > 0 -> at[p].extra--
  :: else -> at[p].free_records++; at[p].urecords++
  fi
}

proctype Receive(byte p) {
  do
  :: atomic { at[p].batch == 0 && at[p].held_data + at[p].held_headers >= NB -> at[p].batch = NB }
#ifndef BREAK_GROW
  // A receive is posted that none of these matches, and no further header can come.
  :: atomic { at[p].batch == 0 && at[p].held_data + at[p].held_headers < NB &&
              at[p].free_records == 0 ->
       at[p].free_records = H;
       at[p].urecords = at[p].urecords + H;
       at[p].extra = at[p].extra + H }
#endif
  :: atomic { at[p].batch > 0 && at[p].held_data > 0 ->
       at[p].batch--;
       at[p].held_data--;
       at[p].in_data--
#ifndef BREAK_SHARE
       ; at[p].udata++
#endif
     }
  // The next receive is posted when the grant for the last has gone.
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
