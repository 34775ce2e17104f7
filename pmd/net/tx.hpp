/// @file
/// A transmit queue of a port.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "pmd/bus/counter.hpp"
#include "pmd/bus/shared_ptr.hpp"
#include "pmd/card/turn.hpp"
#include "pmd/dev/tx_queue.hpp"
#include "pmd/net/bundle.hpp"
#include "pmd/net/cutter.hpp"
#include "pmd/net/peers.hpp"

namespace rio::pmd {

class NetRx;

/// Longest frame, without its FCS: lengths in bundles have 16 bits.
inline constexpr uint32_t kFrameBytesMax = 65535;
/// Longest frame to a peer that does not take bundles.
inline constexpr uint32_t kPlainBytesMax = regs::kMessageBytesMax;
/// Shorter frames are copied into a bundle, longer ones are sent in place. Measured.
inline constexpr uint32_t kCopiedBytesMax = 1024;

struct NetTxConfig {
  uint32_t ring_log2;
  uint8_t mbox;    ///< of plain frames; bundles use the other three in turn
  bool fast_free;  ///< RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE
  bool deferred;   ///< not started with the port
};

/// Counts of a transmit queue. The thread that has the turn writes them.
struct NetTxCounts {
  Counter frames;
  Counter bytes;
  Counter messages;
  Counter refused;  ///< frames that the peer refused, or that are in doubt
  Counter lengths;  ///< frames too short for Ethernet, or too long
  // Frames whose address no joined peer has, or broadcasts to more peers than the ring has entries.
  Counter no_peer;
  Counter bounced;  ///< long frames copied because the card cannot read them in place
};

/// A transmit queue, in memory of all processes, without code pointers. Functions are control path
/// unless marked hot: any thread may call those, and one at a time gets the turn.
class NetTx {
 public:
  /// Create a queue. @param bus, peers outlive it. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, Peers& peers,
                                  const NetTxConfig& config, SharedPtr<NetTx>* out);
  NetTx(Peers& peers, const Caps& caps, const NetTxConfig& config);
  ~NetTx();
  NetTx(const NetTx&) = delete;
  NetTx& operator=(const NetTx&) = delete;

  /// Start on an open ring. @param epoch differs at each start. @param frame_bytes_max longer
  /// frames are refused. @param tells this queue sends the port's doorbells: one queue of a port
  /// does. @param more_ids destIDs behind the port's that send for it; only with `tells`.
  void start(TxQueue& queue, uint16_t epoch, uint32_t frame_bytes_max, bool tells,
             uint32_t more_ids);
  /// Learn of peers through this receiver. After start().
  void listen_to(NetRx& rx) { rx_ = &rx; }
  /// The ring was stopped, and no thread is in burst(). @param settled the card no longer reads
  /// mbufs: all come back. Else those that it may still read stay allocated.
  void stop(bool settled);
  /// The queue's turn, which keeps threads out of burst() while it is taken for good.
  [[nodiscard]] Turn& turn() { return turn_; }

  void set_frame_bytes_max(uint32_t bytes) {
    frame_bytes_max_ = bytes;
    copied_bytes_max_ = std::min(bytes, kCopiedBytesMax);
  }

  /// Any thread. Pause or resume. A paused queue accepts no frames; doorbells go on.
  void set_paused(bool paused) { paused_.store(paused, std::memory_order_relaxed); }

  /// Hot. Send frames. @return how many were accepted; the others stay the caller's.
  uint16_t burst(rte_mbuf** frames, uint16_t n);
  /// Any thread. Ring the owed doorbells. If a thread is in burst(), that thread does it.
  void tell();
  /// Call now and then: does what tell() does, unless there were bursts since the last call.
  void tell_if_idle();
  /// Call now and then. Whether the oldest message was out during `looks` calls in a row while
  /// other joined peers' messages wait behind it. A single peer may take its time.
  [[nodiscard]] bool is_stuck(uint32_t looks);
  /// Stop the ring and start it again. No thread is in burst(). The peer that has not taken its
  /// message counts as asleep; all unsent messages are lost. @return 0, or as stop() and restart()
  /// of queues: then the ring no longer works.
  [[nodiscard]] int give_up();
  /// Tell all joined peers that we leave. Before stop().
  void leave();
  /// Any thread. Fetch completions. @return how many mbufs came back.
  uint32_t clean_up();

  [[nodiscard]] const NetTxCounts& counts() const { return counts_; }
  [[nodiscard]] const TxQueue* queue() const { return queue_; }
  [[nodiscard]] const NetTxConfig& config() const { return config_; }

 private:
  /// A message that the card has, or that is being built.
  struct Record {
    rte_mbuf* chain;  // freed when it was sent; null: the frames were copied
    uint32_t dest_id;
    uint32_t frames;  // frames in the message
  };
  /// A bundle that is being filled.
  struct OpenBundle {
    Mac mac = kNoMac;  // of the receiver; kNoMac: the lane is not open
    uint8_t* va;
    uint32_t at;
    uint32_t items;
    uint32_t record;
    uint32_t dest_id;
  };
  enum class Fate : uint8_t { kTaken, kNotNow };

  [[nodiscard]] uint16_t send(rte_mbuf** frames, uint16_t n);

  // Bundles that are being filled.
  struct Filling;
  [[nodiscard]] static bool is_simple(const rte_mbuf& frame);
  [[nodiscard]] uint32_t fill(Filling* filling, rte_mbuf** frames, uint32_t n);
  [[nodiscard]] bool begin_filling(Filling* filling, const rte_mbuf& frame);
  [[nodiscard]] bool send_in_place(Filling* filling, rte_mbuf& frame);
  [[nodiscard]] bool takes_bundles(uint32_t dest_id) const {
    return dest_id != kNoNetDestId && peers_.bundles.has(dest_id);
  }
  void close_all();
  [[nodiscard]] bool open(OpenBundle& lane, Mac mac);
  void close(OpenBundle& lane);
  [[nodiscard]] OpenBundle& lane_of(Mac mac) { return lanes_[mac >> 40 & (kLanes - 1)]; }
  [[nodiscard]] uint64_t next_header(uint32_t dest_id, uint32_t items);

  // Messages.
  [[nodiscard]] uint32_t take_record(uint32_t dest_id, rte_mbuf* chain, uint32_t frames);
  [[nodiscard]] uint8_t* place_va(uint32_t record) const {
    return static_cast<uint8_t*>(places_.va) + uint64_t{record} * kBundleBytesMax;
  }
  [[nodiscard]] uint64_t place_iova(uint32_t record) const {
    return places_.iova + uint64_t{record} * kBundleBytesMax;
  }
  [[nodiscard]] bool has_room(uint32_t entries, uint32_t records) const {
    return room_ >= entries && free_count_ >= records;
  }
  void stage(uint64_t iova, uint32_t record, uint32_t length_bytes, uint8_t mbox);
  /// The mailbox of the next bundle. They take turns, since one mailbox has few letters.
  [[nodiscard]] uint8_t next_mbox() {
    mbox_bits_ = mbox_bits_ == kMultiMboxes - 1 ? 1 : mbox_bits_ + 1;
    return static_cast<uint8_t>(config_.mbox ^ mbox_bits_);
  }
  void stage_gather(uint32_t record, uint8_t mbox, uint16_t head_bytes, const Piece& piece);

  // Frames beyond the fast path.
  [[nodiscard]] Fate send_slow(rte_mbuf& frame);
  void listen_if_alone();
  [[nodiscard]] Fate send_cut(rte_mbuf& frame, uint32_t dest_id, bool copied);
  void send_piece(rte_mbuf& frame, uint32_t dest_id, const Piece& piece, bool whole, uint32_t at);
  [[nodiscard]] Fate send_plain(rte_mbuf& frame, uint32_t dest_id, bool copied);
  [[nodiscard]] Fate send_to_all(rte_mbuf& frame);

  // Handle completions.
  uint32_t reap();
  void reap_all();
  void not_delivered(const Record& record, Status status);
  void bell_done(const TxDone& done);
  void stage_owed();
  [[nodiscard]] bool tell_mates(uint32_t most);
  [[nodiscard]] bool ring_bell(uint32_t dest_id, uint16_t info);

  static constexpr uint32_t kMultiMboxes = regs::kMultiMailboxes;
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kBurst = 32;
  static constexpr uint8_t kFailuresMax = 4;  // consecutive failures
  /// Completions are fetched once so many messages are out: a fetch costs as much as several
  /// messages.
  static constexpr uint32_t kReapAt = 8;

  // Hot.
  Turn turn_;
  TxQueue* queue_ = nullptr;  // null: stopped
  Peers& peers_;
  uint32_t room_ = 0;  // free entries of the ring that are not reserved
  uint32_t free_count_ = 0;
  uint32_t* free_records_ = nullptr;  // the first free_count_ are valid
  Record* records_ = nullptr;         // one for each entry of the ring, with room for its bytes
  DmaMemory places_;
  uint32_t staged_ = 0;      // messages staged in this burst
  uint32_t lanes_open_ = 0;  // a bit for each open lane
  uint32_t bursts_ = 0;
  uint32_t reap_at_ = kReapAt;     // fetch completions when so many messages are out
  uint32_t mbox_bits_ = 1;         // the last bundle's mailbox XOR that of plain frames
  uint32_t copied_bytes_max_ = 0;  // longer frames are not copied, or not allowed
  uint16_t epoch_ = 0;
  std::atomic<bool> paused_ = false;
  bool tells_ = false;
  bool failures_seen_ = false;
  NetTxConfig config_;
  std::array<OpenBundle, kLanes> lanes_;
  NetTxCounts counts_;
  // Less hot.
  uint64_t misaligned_;  // bits that must be 0 in an address
  bool wide_;            // the card gathers
  uint32_t frame_bytes_max_ = 0;
  NetRx* rx_ = nullptr;
  uint32_t listened_at_ = 0;  // value of bursts_ when listen_if_alone() last listened
  uint32_t bursts_seen_ = 0;  // bursts_, as tell_if_idle() saw it last
  uint32_t more_ids_ = 0;
  uint32_t bells_out_ = 0;  // outstanding doorbells
  uint32_t oldest_ = 0;     // entry that is_stuck() saw last
  uint32_t looks_ = 0;      // and how many times in a row
  bool giving_up_ = false;  // give_up() is stopping the ring: messages that come back were given up
  Bus* bus_ = nullptr;
  std::array<uint16_t, kNetDestIds> numbers_{};  // number of the next message to each destID
  std::array<uint8_t, kNetDestIds> failures_{};  // consecutive failures of each destID
};

}  // namespace rio::pmd
