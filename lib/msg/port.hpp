/// @file
/// A queue pair of a card, shared by contexts: what is sent, what arrives, and who gets it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lib/msg/config.hpp"
#include "lib/msg/delivery.hpp"
#include "lib/msg/link.hpp"
#include "pmd/embed/riopmd.hpp"

namespace rio::msg {

class Context;

/// What a port has counted.
struct PortStats {
  uint64_t sent = 0;       ///< numbered messages
  uint64_t received = 0;   ///< the same, in their order
  uint64_t again = 0;      ///< sent once more, since the card could not say that they arrived
  uint64_t early = 0;      ///< arrived before one with a lower number
  uint64_t twice = 0;      ///< arrived once more
  uint64_t bad = 0;        ///< of no session, no context, or no sense: dropped
  uint64_t cut_off = 0;    ///< sessions ended because the peer broke a rule
  uint64_t copied = 0;     ///< bytes copied by this library
};

/// One thread: all functions of a port and of its contexts. Nothing happens but in their calls.
class Port {
 public:
  /// Open the card's queue pair. @return 0; -EINVAL (configuration; told in the log), or as
  /// rio::Endpoint::open().
  [[nodiscard]] static int open(const PortConfig& config, std::unique_ptr<Port>* out);
  /// Contexts are closed before.
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// Take what has arrived, say what has to be said. Bounded. Any call that waits for something
  /// does this, too. @return messages taken; 0 also when the card is gone: see error().
  uint32_t progress();

  /// Make progress until what was sent has arrived, or failed, for at most so long.
  /// @return 0, -ETIMEDOUT.
  int flush(uint32_t timeout_ms);

  /// Hot. Send one message of at most kPartBytesMax bytes; they are copied.
  /// @param iov pieces, `bytes` in all. @param kind one that takes a credit. @return 0; -EAGAIN:
  /// no room, or not connected yet: make progress and try again; or why it cannot be: -ECONNRESET
  /// (the session is over; the next call begins a new one), -ECONNREFUSED (no such context there),
  /// -EHOSTUNREACH (does not answer), -ENODEV (the card is gone).
  [[nodiscard]] int send(Link& link, uint16_t from, uint16_t to, Kind kind, const iovec* iov,
                         int count, uint32_t bytes);

  /// Hot. The buffer of a delivery is the port's again.
  void give_back(const Delivery& delivery);

  /// The link to a peer, made if need be. @return null: no memory.
  [[nodiscard]] Link* link(uint32_t dest_id);

  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  /// 0, or -ENODEV: the card is gone.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] const PortStats& stats() const { return stats_; }
  [[nodiscard]] Endpoint& endpoint() { return *endpoint_; }
  /// Buffers that no share is set aside for.
  [[nodiscard]] uint32_t unshared() const { return unshared_; }

 private:
  friend class Context;
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kPosted = 256;  // buffers that the card has
  static constexpr uint32_t kSlots = 512;
  static constexpr uint32_t kLinksMax = 1u << 16;
  static constexpr uint16_t kTriesMax = 1000;
  static constexpr uint32_t kReserve = 16;  // slots and ring entries that only the library takes

  /// Places for messages, in one piece of the card's memory, which is freed with the Endpoint. Heads
  /// of neighbours fall into different sets of the L1 cache.
  struct Area {
    static constexpr uint32_t kStrideBytes = regs::kMessageBytesMax + regs::kSegmentBytesMax;
    uint8_t* base_va = nullptr;
    uint64_t base_iova = 0;

    [[nodiscard]] uint8_t* va(uint32_t i) const { return base_va + uint64_t{i} * kStrideBytes; }
    [[nodiscard]] uint64_t iova(uint32_t i) const { return base_iova + uint64_t{i} * kStrideBytes; }
  };

  /// What lies in a slot of ours, until the card says what became of it.
  struct Sent {
    uint32_t link;
    uint32_t session;
    uint16_t length_bytes;
    uint16_t tries;
  };

  explicit Port(const PortConfig& config) : config_(config) {}
  [[nodiscard]] int start();
  [[nodiscard]] int start_buffers();
  [[nodiscard]] int make_area(uint32_t count, Area* out);

  // What arrives: receive.cc.
  void take(const pmd::RxMessage& message);
  void take_other(Link* link, uint8_t* buffer, const pmd::RxMessage& message);
  void take_numbered(Link& link, uint8_t* buffer, uint32_t length_bytes);
  [[nodiscard]] bool deliver(Link& link, uint8_t* buffer, const Header& header,
                             uint32_t length_bytes);
  void control(Link& link, const Header& header);
  void repost(uint8_t* buffer);
  void refill();

  // What is sent: send.cc.
  [[nodiscard]] int not_now(Link& link, uint16_t to);
  [[nodiscard]] bool post(Link& link, uint32_t slot, uint32_t length_bytes);
  void reap();
  void failed(uint32_t slot, pmd::Status status);
  void send_again();

  // Sessions: session.cc.
  void on_session(uint32_t source, const uint8_t* buffer, uint32_t length_bytes);
  void on_hello(uint32_t source, const SessionBody& body);
  void on_unknown(uint32_t source, uint32_t key);
  void end_session(Link& link, int error);
  void cut_off(Link& link);
  void want(Link& link);
  void speak();
  [[nodiscard]] bool speak(Link& link);
  [[nodiscard]] bool say(Link& link, Kind kind, uint16_t to, uint16_t from, uint16_t credit);
  [[nodiscard]] bool say_session(Link& link, Kind kind, uint32_t session);
  void ask(Link& link);
  void look_at_time();
  [[nodiscard]] uint32_t new_key(const Link& link);
  void open_inflow(Link& link, uint16_t context);
  void close_context(uint16_t id);

  PortConfig config_;
  std::unique_ptr<Endpoint> endpoint_;
  pmd::TxQueue* tx_ = nullptr;
  pmd::SharedRxQueue* shared_ = nullptr;
  int error_ = 0;
  uint32_t dest_id_ = 0;

  // Sending.
  Area slots_;
  std::unique_ptr<uint32_t[]> free_slots_;
  uint32_t free_slot_count_ = 0;
  std::unique_ptr<Sent[]> sent_;  // by slot
  uint32_t until_reap_ = kBurst;
  std::vector<uint32_t> again_;  // slots

  // Receiving.
  Area buffers_;
  uint64_t buffer_iova_minus_va_ = 0;
  std::unique_ptr<uint8_t*[]> spare_;  // that the card does not have, nor anybody else
  uint32_t spare_count_ = 0;
  uint32_t posted_ = 0;
  uint32_t unshared_ = 0;
  std::array<Context*, kContexts> contexts_{};

  std::vector<std::unique_ptr<Link>> links_;  // by index
  std::unordered_map<uint32_t, uint32_t> index_of_;  // by destID
  std::vector<uint32_t> talkers_;  // indices of links that have something to say
  std::vector<uint32_t> asking_;   // and of those that said hello
  uint32_t until_time_ = kBurst;
  uint64_t key_seed_ = 0;
  PortStats stats_;
};

}  // namespace rio::msg
