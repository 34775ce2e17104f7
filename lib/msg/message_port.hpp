/// @file
/// A queue pair of a card, shared by contexts: it sends messages, takes arrivals, and sorts them.
/// README.md tells what each of its objects does.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/msg/buffers.hpp"
#include "lib/msg/card_health.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/context_slot.hpp"
#include "lib/msg/copy.hpp"
#include "lib/msg/deadlines.hpp"
#include "lib/msg/departures.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/failures.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/intake.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"
#include "lib/msg/profile.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/silence.hpp"
#include "lib/msg/sleepers.hpp"
#include "lib/msg/sorter.hpp"
#include "lib/msg/speaker.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One thread: all functions of a port and of its contexts; or several, with the Guard of
/// waiting.hpp. Nothing happens but in their calls.
class MessagePort {
 public:
  /// Open the card's queue pair. @return 0; -EINVAL (configuration; told in the log), or as
  /// rio::Endpoint::open().
  [[nodiscard]] static int open(const PortConfig& config, std::unique_ptr<MessagePort>* out);
  /// Contexts are closed before.
  ~MessagePort();
  MessagePort(const MessagePort&) = delete;
  MessagePort& operator=(const MessagePort&) = delete;

  /// Take what has arrived, say what has to be said. Bounded. Any call that waits for something
  /// does this, too. @return messages taken; 0 also when the card is gone: see error().
  uint32_t progress();
  /// Make progress until what was sent has arrived, or failed, for at most so long.
  /// @return 0, -ETIMEDOUT, -ENODEV.
  int flush(uint32_t timeout_ms);
  /// Memory that transfers of this port still use, whose owner is closed: freed with the port.
  void take_over(std::shared_ptr<void> memory) { taken_over_.push_back(std::move(memory)); }

  /// The way from a context to one of a peer's, valid as long as the context. @param to, from below
  /// kContexts. @param kind of what will be sent: one that takes a credit. @return 0, -EINVAL
  /// (context), -ENOMEM.
  [[nodiscard]] int route(uint32_t dest_id, uint32_t to, uint32_t from, Kind kind, Route* out);

  /// Hot. Send one message; its bytes are copied. @param bytes 0 to kPartBytesMax. @return 0;
  /// -EAGAIN: no room, or not connected yet: make progress and try again; -EMSGSIZE; or why it
  /// cannot be, which each context with a route hears once, before anything else of it is sent:
  /// -ECONNRESET (the session is over; the next call begins a new one), -ECONNREFUSED (no such
  /// context there), -EHOSTUNREACH (does not answer), -ENODEV (the card is gone), or what this
  /// process lacks to reach the peer: -EMFILE, -ENOMEM, -EPERM, and the like.
  [[nodiscard]] int send(const Route& route, const void* data, uint32_t bytes) {
    if (bytes > kPartBytesMax) [[unlikely]] {
      return -EMSGSIZE;
    }
    if (!outbox_.may_send(route)) [[unlikely]] {
      return not_now(route);
    }
    uint8_t* const at = outbox_.begin_message(route, bytes);
    if (bytes != 0) {
      std::memcpy(at + kHeaderBytes, data, bytes);
    }
    outbox_.post(*route.link, at, kHeaderBytes + bytes);
    return 0;
  }
  /// Gathered. @param iov pieces, `bytes` in all, as those of the send() above.
  [[nodiscard]] int send(const Route& route, const iovec* iov, int count, uint32_t bytes);
  /// Hot. With a header of the caller's before the data. @param head_bytes with `bytes` at most
  /// kPartBytesMax.
  [[nodiscard]] int send(const Route& route, const void* head, uint32_t head_bytes,
                         const void* data, uint32_t bytes) {
    if (!outbox_.may_send(route)) [[unlikely]] {
      return not_now(route);
    }
    uint8_t* const at = outbox_.begin_message(route, head_bytes + bytes);
    std::memcpy(at + kHeaderBytes, head, head_bytes);
    if (bytes != 0) {
      std::memcpy(at + kHeaderBytes + head_bytes, data, bytes);
    }
    outbox_.post(*route.link, at, kHeaderBytes + head_bytes + bytes);
    return 0;
  }

  /// Hot. Send kTinyBytesMax bytes at most, without any call but the card's hook; not before send()
  /// after a session has ended: MessageContext::on_session_end(). @return false: not sent; ask
  /// send() why.
  [[nodiscard]] bool send_tiny(const Route& route, const void* data, uint32_t bytes) {
    return outbox_.send_one(route, bytes, [&](uint8_t* at) {
      copy_tiny(at, static_cast<const uint8_t*>(data), bytes);
    });
  }
  /// Hot. With a word before the data. @param bytes 0 to kTinyBytesMax.
  [[nodiscard]] bool send_tiny(const Route& route, uint64_t word, const void* data,
                               uint32_t bytes) {
    return outbox_.send_one(route, sizeof(word) + bytes, [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      copy_tiny(at + sizeof(word), static_cast<const uint8_t*>(data), bytes);
    });
  }
  /// Hot. With two words before the data, as Kind::kDataImmediate. @param route of Kind::kData.
  [[nodiscard]] bool send_tiny(const Route& route, uint64_t word, uint64_t immediate,
                               const void* data, uint32_t bytes) {
    const auto fill = [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      std::memcpy(at + sizeof(word), &immediate, sizeof(immediate));
      copy_tiny(at + 2 * sizeof(word), static_cast<const uint8_t*>(data), bytes);
    };
    return outbox_.send_one(route, 2 * sizeof(word) + bytes, fill, Kind::kDataImmediate);
  }

  // Peers.

  /// End the session with a peer whose messages make no sense to the layer above; a warning is
  /// logged. Both sides may begin a new one.
  void cut_off(Link& link) { sessions_.cut_off(link); }
  /// How many sessions have ended: a layer that remembers something of one looks when this has
  /// changed.
  [[nodiscard]] uint64_t sessions_ended() const { return sessions_.ended(); }
  /// Links are never taken away. @param index below link_count().
  [[nodiscard]] uint32_t link_count() const { return peers_.count(); }
  [[nodiscard]] Link& link_at(uint32_t index) { return peers_.at(index); }
  /// The link to a peer, made if need be. @return null: no memory.
  [[nodiscard]] Link* link(uint32_t dest_id) { return peers_.find_or_make(dest_id); }
  [[nodiscard]] Link* known_link(uint32_t dest_id) const {  ///< null: there is none yet
    return peers_.find(dest_id);
  }
  /// Process the card's events, which tell of peers that have gone.
  void look_for_gone() {
    departures_.look([this] { intake_.take_all(); });
  }
  /// The process at this destID is known to be `instance`: end a session with any other instance.
  void meet_instance(uint32_t dest_id, uint32_t instance) {
    look_for_gone();
    sessions_.meet_instance(dest_id, instance);
  }
  /// As rio::Endpoint's.
  [[nodiscard]] int reach(const std::string& address, uint32_t* dest_id) {
    return endpoint_->reach(address, dest_id);
  }

  // This port.

  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  /// Not 0. Random, drawn for each port: tells apart processes that had the same destID.
  [[nodiscard]] uint32_t instance() const { return instance_; }
  /// As rio::Endpoint's.
  [[nodiscard]] std::string address() const { return endpoint_->address(); }
  [[nodiscard]] Endpoint& endpoint() { return *endpoint_; }
  /// 0, or -ENODEV: the card is gone, or was reset behind our back.
  [[nodiscard]] int error() const { return health_.error(); }
  [[nodiscard]] const PortConfig& config() const { return config_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] PortStats stats() const {
    PortStats all = stats_;
    all.copied += outbox_.copied();
    all.received += intake_.received();
    all.woken = sleepers_.woken();
    all.overslept = sleepers_.overslept();
    return all;
  }
  /// A layer above has copied so many bytes.
  void count_copied(uint64_t bytes) { stats_.copied += bytes; }
  [[nodiscard]] uint32_t unshared() const { return inflows_.unshared(); }  ///< buffers of no share
  /// For the memory of peers; null: the card has no DMA queue. A transfer that waits there is moved
  /// on by progress().
  [[nodiscard]] Dma* dma() { return dma_.get(); }
  /// The user's memory, as the card reaches it. Null: no memory.
  [[nodiscard]] Registrations* registrations() {
    return large_.start() == 0 ? &large_.memory() : nullptr;
  }

  // Threads and sleep, for waiting.hpp.

  /// The longest sleep: a card that is gone is noticed by then.
  static constexpr uint32_t kSleepBoundMs = 1000;

  /// A Guard's beginning and end.
  void enter() { sleepers_.lock(); }
  void leave();
  /// Grows with all that comes from the card: what was refused for want of room is worth another
  /// try when this has changed.
  [[nodiscard]] uint64_t activity() const;
  /// All that progress() otherwise looks at now and then.
  void look_at_all();
  /// Ask the card for interrupts.
  void arm();
  /// Until when something has to be done that no ring tells about.
  [[nodiscard]] uint32_t sleep_bound_ms() const;
  [[nodiscard]] Sleepers& sleepers() { return sleepers_; }
  /// The users of the port sleep, and do not look all the time.
  [[nodiscard]] bool sleeps() const { return sleepers_.has_slept(); }

 private:
  friend class MessageContext;
  static constexpr uint32_t kCallsPerLook = 32;  // of progress()

  MessagePort(const PortConfig& config, const Profile& profile, std::unique_ptr<Endpoint> endpoint,
              uint64_t seed, uint32_t instance);
  [[gnu::noinline]] [[nodiscard]] int not_now(const Route& route);
  [[gnu::noinline]] void look_now_and_then();
  void look_at_time();

  std::vector<std::shared_ptr<void>> taken_over_;  // destroyed last
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Dma> dma_;  // null: the card has none

  // Each message.
  Outbox outbox_;
  Intake intake_;
  Buffers buffers_;
  Peers peers_;
  uint32_t until_look_ = kCallsPerLook;
  Large large_;
  ContextSlots contexts_{};

  // Now and then. References to objects may be to ones that are made later.
  Inflows inflows_;
  Retries retries_;
  CardHealth health_;
  Speaker speaker_;
  Sessions sessions_;
  Silence silence_;
  Departures departures_;
  Failures failures_;
  Deadlines deadlines_;
  Sorter sorter_;
  Sleepers sleepers_;
  PortStats stats_;
  PortConfig config_;
  Profile profile_;
  uint32_t dest_id_;
  uint32_t instance_;
};

}  // namespace rio::msg
