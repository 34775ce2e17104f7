/// @file
/// The receiver of a port.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "pmd/bus/counter.hpp"
#include "pmd/bus/shared_ptr.hpp"
#include "pmd/card/turn.hpp"
#include "pmd/dev/notice_queue.hpp"
#include "pmd/dev/shared_rx_queue.hpp"
#include "pmd/net/bundle.hpp"
#include "pmd/net/order.hpp"
#include "pmd/net/peers.hpp"
#include "pmd/net/rss.hpp"
#include "pmd/net/rx_buffers.hpp"
#include "pmd/net/storm.hpp"
#include "pmd/net/tx.hpp"

namespace rio::pmd {

class NetRx;

/// Most receive queues of a port, each polled by another lcore.
inline constexpr uint16_t kRxQueuesMax = 16;
/// Longer frames are handed over in their buffer, if they are alone in it; shorter ones are copied.
/// Measured.
inline constexpr uint32_t kHandedBytesMin = 512;

/// Counts of a port's received messages, before their queue is known. The thread that has the turn
/// writes them, as it does the others below.
struct NetRxCounts {
  Counter messages;
  Counter bundles;        ///< messages that are bundles
  Counter failed;         ///< messages that the card received in part
  Counter lengths;        ///< frames too short for Ethernet
  Counter too_long;       ///< frames longer than the MTU allows, or than an mbuf without `scatter`
  Counter spoofed;        ///< frames with the source address of another card
  Counter bad_bundles;    ///< malformed bundles; the rest of the bundle is dropped
  Counter bad_parts;      ///< frames with a missing part
  Counter bad_mailboxes;  ///< messages to mailboxes that the port does not use
  Counter storms;         ///< broadcasts and multicasts beyond the limit
  Counter late;           ///< bundles that arrived after the wait for them was over
  Counter out_of_order;   ///< bundles that had to wait for earlier ones
  Counter joins;
  Counter leaves;
};

/// Counts of a receive queue.
struct NetRxQueueCounts {
  Counter frames;
  Counter bytes;
  Counter no_mbuf;    ///< times that mbufs were short; the frames wait
  Counter ring_full;  ///< frames dropped because this queue is not polled
};

/// A receive queue, in memory of all processes, with its settings.
struct NetRxQueue {
  ~NetRxQueue();
  /// Drop the frames that other queues have received for this one, which is no longer polled.
  void drain();

  NetRx* rx;
  uint16_t number;
  bool scatter;               ///< frames may take several mbufs
  bool deferred;              ///< not started with the port
  std::atomic<bool> stopped;  ///< receives nothing
  rte_mempool* pool;
  uint32_t room_bytes;        ///< of one of the queue's mbufs
  uint32_t entries;           ///< as asked for at set-up
  uint64_t rearm;             ///< an mbuf's data_off, refcnt, nb_segs and port
  rte_ring* ring;             ///< of frames that other queues have received; null: there are none
  uint64_t held_since_ticks;  ///< since when frames have waited for this queue; 0: none wait
  NetRxQueueCounts counts;
};

struct NetRxConfig {
  uint32_t ring_log2;
  uint8_t mbox;         ///< of plain frames; bundles come to the other three
  uint16_t priv_bytes;  ///< of the user's mbufs
  uint64_t storm_frames_per_s;
  uint32_t handed_bytes_min;  ///< longer frames may be handed over in their buffer
  bool works_alone;           ///< the card works without polls
  bool operator==(const NetRxConfig&) const = default;
};

/// The part that all receive queues of a port share: the card's ring, and the state of each peer.
/// In memory of all processes, without code pointers. Functions are control path unless marked hot:
/// any thread may call those, and one at a time gets the turn.
class NetRx {
 public:
  /// Create a receiver. @param bus, peers outlive it. @return 0, -ENOMEM.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, Peers& peers,
                                  const NetRxConfig& config, SharedPtr<NetRx>* out);
  NetRx(Peers& peers, const NetRxConfig& config);

  /// Start on open rings. @param frame_bytes_max longer frames are dropped. @param queues number of
  /// receive queues. @param rss outlives it. @param teller sends the doorbells that this owes.
  /// @return 0, -EIO.
  [[nodiscard]] int start(SharedRxQueue& queue, DoorbellQueue& doorbells, uint32_t frame_bytes_max,
                          NetRxQueue* const* queues, uint16_t count, const Rss& rss, NetTx& teller);
  /// The rings were stopped, and no thread is in burst(). Drops the frames that had come. @param
  /// settled the card no longer writes to buffers; else those that it has are lost.
  void stop(bool settled);
  /// The turn of all receive queues, which keeps threads out of burst() while it is taken for good.
  [[nodiscard]] Turn& turn() { return turn_; }
  void set_frame_bytes_max(uint32_t bytes) { frame_bytes_max_ = bytes; }

  /// Hot. Receive on a port with one queue. @return how many frames were received.
  uint16_t burst(NetRxQueue& queue, rte_mbuf** frames, uint16_t n);
  /// Hot. Receive on a port with several queues: frames for others go to their rings.
  uint16_t burst_of_several(NetRxQueue& queue, rte_mbuf** frames, uint16_t n);
  /// Whether frames wait here, or are awaited for a moment: poll, since the card will not tell. For
  /// the holder of the turn.
  [[nodiscard]] bool has_more() const {
    return current_.buffer != nullptr || fetched_at_ != fetched_count_ || order_.has_next() ||
           order_.parked() != 0;
  }
  /// Any thread. Process the doorbells of peers.
  void listen();

  [[nodiscard]] const NetRxCounts& counts() const { return counts_; }
  /// Whether messages arrive without polls.
  [[nodiscard]] bool works_alone() const { return config_.works_alone; }
  [[nodiscard]] const SharedRxQueue* queue() const { return queue_; }
  [[nodiscard]] const NetRxConfig& config() const { return config_; }

 private:
  /// The message that is being processed.
  struct Current {
    rte_mbuf* buffer;  // null: none
    const uint8_t* at;
    const uint8_t* end;
    uint32_t items;  // items that are left
    bool plain;
    bool alone;  // the message has one item: its frame may be handed over in this buffer
    bool late;
    Source* source;  // of a bundle; null: there is no room for another source
    Mac own_mac;     // the source address that frames should have
    Mac port_mac;    // of the sender's port, once a frame has named it; the sender's own until then
  };
  enum class Took : uint8_t { kFrame, kNothing, kNotNow };

  uint16_t receive(NetRxQueue& queue, rte_mbuf** frames, uint16_t n);

  // Messages.
  [[nodiscard]] bool next_message();
  [[nodiscard]] bool open(const RxMessage& message);
  [[nodiscard]] bool open_bundle(rte_mbuf* buffer, uint32_t source, uint32_t length_bytes);
  void begin(rte_mbuf* buffer, uint32_t source_id, uint32_t length_bytes);
  void drop(rte_mbuf* buffer) { spent_[spent_count_++] = buffer; }
  void finish();
  void post_spent();
  void make_room_for_spent();

  // Frames.
  [[nodiscard]] uint16_t take_small(NetRxQueue& queue, rte_mbuf** frames, uint16_t n);
  [[nodiscard]] bool take_alone(NetRxQueue& queue, rte_mbuf** out);
  [[nodiscard]] Took take_item(NetRxQueue& polled, rte_mbuf** out);
  [[nodiscard]] Took take_frame(NetRxQueue& polled, const uint8_t* from, uint32_t length_bytes,
                                rte_mbuf** out);
  [[nodiscard]] Took take_part(NetRxQueue& polled, const ItemHeader& part, const uint8_t* from,
                               rte_mbuf** out);
  [[nodiscard]] bool good(const uint8_t* from, uint32_t length_bytes);
  [[nodiscard]] bool is_of_sender(Mac mac);
  [[nodiscard]] NetRxQueue& queue_for(NetRxQueue& polled, const uint8_t* from,
                                      uint32_t length_bytes);
  [[nodiscard]] rte_mbuf* hand_over(const NetRxQueue& queue, const uint8_t* from,
                                    uint64_t length_bytes);
  [[nodiscard]] rte_mbuf* copy(NetRxQueue& queue, const uint8_t* from, uint32_t length_bytes);
  [[nodiscard]] Took give(NetRxQueue& polled, NetRxQueue& queue, rte_mbuf* frame, rte_mbuf** out);
  [[nodiscard]] bool add_part(Source& source, NetRxQueue& queue, const ItemHeader& part,
                              const uint8_t* from);
  void refund(const uint8_t* from);
  [[nodiscard]] static bool has_place(const NetRxQueue& polled, const NetRxQueue& queue);
  [[nodiscard]] static Took miss(NetRxQueue& queue);
  [[nodiscard]] Took hold(const NetRxQueue& polled, NetRxQueue& queue);
  [[nodiscard]] Took no_mbufs(const NetRxQueue& polled, NetRxQueue& queue);
  void wait_for_mbufs();
  void drop_partial(Source& source);

  void poll_doorbells();
  void heard(uint32_t source, uint16_t info);
  void meet(uint32_t dest_id);

  static constexpr uint32_t kFetch = 32;  // messages fetched at once
  static constexpr uint32_t kSpentMax = 3 * kFetch;
  /// Longest time that a bundle stays parked. Sender and card retry within microseconds, but a
  /// sender that computes meanwhile may be late.
  static constexpr uint64_t kWaitsPerSecond = 200;
  /// A queue counts as not polled when frames have waited for it this long and it took none. Longer
  /// than a polling thread usually loses its CPU to others.
  static constexpr uint64_t kHoldsPerSecond = 20;

  // Hot.
  Turn turn_;
  SharedRxQueue* queue_ = nullptr;  // null: stopped
  uint32_t bursts_ = 0;
  uint32_t spent_count_ = 0;
  uint32_t lacking_ = 0;  // buffers that the card should have but has not
  uint32_t repost_at_ = 1;
  uint32_t fetched_at_ = 0;
  uint32_t fetched_count_ = 0;
  bool may_fetch_ = false;
  bool may_listen_ = false;
  bool several_ = false;
  uint32_t frame_bytes_max_ = 0;
  Current current_{};
  uint32_t last_source_id_ = kNoNetDestId;
  Mac last_source_mac_ = kNoMac;
  Order order_;
  Peers& peers_;
  NetRxConfig config_;
  NetRxCounts counts_;
  std::array<RxMessage, kFetch> fetched_;
  std::array<rte_mbuf*, kSpentMax> spent_;
  RxBuffers buffers_;
  DoorbellQueue* doorbells_ = nullptr;
  NetTx* teller_ = nullptr;
  StormControl storm_;
  std::array<NetRxQueue*, kRxQueuesMax> queues_{};
  uint16_t queues_count_ = 0;
  const Rss* rss_ = nullptr;
  // The frame that has found no mbufs, and since when.
  const uint8_t* stuck_at_ = nullptr;
  uint32_t stuck_burst_ = 0;
  uint64_t stuck_since_ticks_ = 0;
  Sources sources_;
  DestIdSet met_;  // peers that were called because they sent
};

}  // namespace rio::pmd
