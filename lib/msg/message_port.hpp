/// @file
/// A queue pair of a card, shared by contexts: sends their messages, and distributes arrivals among
/// them. README.md describes the objects that a port consists of.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "lib/msg/buffers.hpp"
#include "lib/msg/config.hpp"
#include "lib/msg/context_slot.hpp"
#include "lib/msg/copy.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/patience.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/profile.hpp"
#include "lib/msg/rail.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/sleepers.hpp"
#include "lib/msg/sorter.hpp"
#include "lib/msg/speaker.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// All functions of a port and of its contexts run on one thread, or on several threads under the
/// Guard of waiting.hpp. A port does nothing outside of these calls.
class MessagePort {
 public:
  /// Open the card's queue pair. @return 0; -EINVAL (configuration; logged), or as
  /// rio::Endpoint::open().
  [[nodiscard]] static int open(const PortConfig& config, std::unique_ptr<MessagePort>* out);
  /// A card on a bus of the caller's making, such as one in virtual time.
  struct BusCard {
    std::unique_ptr<pmd::Bus> bus;
    uint32_t dest_id;
  };
  /// Open the queue pair of such cards, the port's rails. @param cards 1 to kRailsMax; the port
  /// owns them. @param config its `card` only names the port in errors, and its destID is not used.
  /// @return as open() by name.
  [[nodiscard]] static int open(std::vector<BusCard> cards, const PortConfig& config,
                                std::unique_ptr<MessagePort>* out);
  /// All contexts must be closed before.
  ~MessagePort();
  MessagePort(const MessagePort&) = delete;
  MessagePort& operator=(const MessagePort&) = delete;

  /// Take arrivals and send what the library has to tell peers. Bounded work. Every call that waits
  /// also does this. @return messages taken; also 0 if the card is gone: see error().
  uint32_t progress();
  /// Make progress until all sent messages have arrived or failed, for at most `timeout_ms`.
  /// @return 0, -ETIMEDOUT, -ENODEV.
  int flush(uint32_t timeout_ms);
  /// Keep memory that transfers may still use although its owner is closed. It is freed with the
  /// port.
  void take_over(std::shared_ptr<void> memory) { taken_over_.push_back(std::move(memory)); }

  /// Make the route from a context of ours to a context of a peer; valid as long as our context.
  /// @param to, from below kContexts. @param kind of the messages to send; a kind that takes a
  /// credit. @return 0, -EINVAL (context), -ENOMEM.
  [[nodiscard]] int route(uint32_t dest_id, uint32_t to, uint32_t from, Kind kind, Route* out);

  /// Hot. Send one message; its bytes are copied. @param bytes 0 to kPartBytesMax. @return 0;
  /// -EAGAIN: no room, or not connected yet: make progress and try again; -EMSGSIZE; or, once for
  /// each context before it can send again: -ECONNRESET (the session is over; the next call begins
  /// a new one), -ECONNREFUSED (no such context), -EHOSTUNREACH (the peer does not answer), -ENODEV
  /// (the card is gone), or a local reason why the peer cannot be reached: -EMFILE, -ENOMEM,
  /// -EPERM, etc.
  [[nodiscard]] int send(const Route& route, const void* data, uint32_t bytes) {
    if (bytes > kPartBytesMax) [[unlikely]] {
      return -EMSGSIZE;
    }
    return send_by<&Outbox::post>(route, data, bytes);
  }
  /// Send one message gathered from `count` pieces. @param bytes their total. @return as the first
  /// send().
  [[nodiscard]] int send(const Route& route, const iovec* iov, int count, uint32_t bytes);
  /// Hot. Send one message that consists of a caller's header and data. @param head_bytes plus
  /// `bytes`: at most kPartBytesMax. @return as the first send().
  [[nodiscard]] int send(const Route& route, const void* head, uint32_t head_bytes,
                         const void* data, uint32_t bytes) {
    Outbox& outbox = *route.link->outbox;
    if (!outbox.may_send(route)) [[unlikely]] {
      return not_now(route);
    }
    uint8_t* const at = outbox.begin_message(route, head_bytes + bytes);
    std::memcpy(at + kHeaderBytes, head, head_bytes);
    if (bytes != 0) {
      std::memcpy(at + kHeaderBytes + head_bytes, data, bytes);
    }
    outbox.post(*route.link, at, kHeaderBytes + head_bytes + bytes);
    return 0;
  }
  /// Send a part behind the first one of a message, to the mailbox of full parts, so that they can
  /// leave as a run, and no short last part lets the ring pass over those that wait. @param bytes 0
  /// to kPartBytesMax. @return as the first send().
  [[nodiscard]] int send_part(const Route& route, const void* data, uint32_t bytes) {
    return send_by<&Outbox::post_part>(route, data, bytes);
  }

  /// Hot. Send at most kTinyBytesMax bytes, without any call except the card's hook. After a
  /// session has ended (MessageContext::on_session_end()), call send() first. @return false: not
  /// sent; send() returns the reason.
  [[nodiscard]] bool send_tiny(const Route& route, const void* data, uint32_t bytes) {
    return Outbox::send_one(route, bytes, [&](uint8_t* at) {
      copy_tiny(at, static_cast<const uint8_t*>(data), bytes);
    });
  }
  /// Hot. send_tiny() with a word before the data. @param bytes 0 to kTinyBytesMax.
  [[nodiscard]] bool send_tiny(const Route& route, uint64_t word, const void* data,
                               uint32_t bytes) {
    return Outbox::send_one(route, sizeof(word) + bytes, [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      copy_tiny(at + sizeof(word), static_cast<const uint8_t*>(data), bytes);
    });
  }
  /// Hot. send_tiny() with two words before the data, as Kind::kDataImmediate. @param route made
  /// for Kind::kData.
  [[nodiscard]] bool send_tiny(const Route& route, uint64_t word, uint64_t immediate,
                               const void* data, uint32_t bytes) {
    const auto fill = [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      std::memcpy(at + sizeof(word), &immediate, sizeof(immediate));
      copy_tiny(at + 2 * sizeof(word), static_cast<const uint8_t*>(data), bytes);
    };
    return Outbox::send_one(route, 2 * sizeof(word) + bytes, fill, Kind::kDataImmediate);
  }

  /// Hot. send_tiny() with a word before the data, for a message of any length. @param bytes 0 to
  /// kPartBytesMax less the word.
  [[nodiscard]] static bool send_whole(const Route& route, uint64_t word, const void* data,
                                       uint32_t bytes) {
    return Outbox::send_one<true>(route, sizeof(word) + bytes, [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      at += sizeof(word);
      copy_any(at, static_cast<const uint8_t*>(data), bytes, at);
    });
  }
  /// Hot. send_whole() with two words before the data, as Kind::kDataImmediate. @param route made
  /// for Kind::kData.
  [[nodiscard]] static bool send_whole(const Route& route, uint64_t word, uint64_t immediate,
                                       const void* data, uint32_t bytes) {
    const auto fill = [&](uint8_t* at) {
      std::memcpy(at, &word, sizeof(word));
      std::memcpy(at + sizeof(word), &immediate, sizeof(immediate));
      at += 2 * sizeof(word);
      copy_any(at, static_cast<const uint8_t*>(data), bytes, at);
    };
    return Outbox::send_one<true>(route, 2 * sizeof(word) + bytes, fill, Kind::kDataImmediate);
  }

  // Peers.

  /// End the session with a peer whose messages are invalid for the layer above; logs a warning.
  /// Both sides may begin a new session.
  void cut_off(Link& link) { sessions_.cut_off(link); }
  /// Count of ended sessions. A layer that keeps state of sessions checks it whenever this has
  /// changed.
  [[nodiscard]] uint64_t sessions_ended() const { return sessions_.ended(); }
  /// Links are never removed. @param index below link_count().
  [[nodiscard]] uint32_t link_count() const { return peers_.count(); }
  [[nodiscard]] Link& link_at(uint32_t index) { return peers_.at(index); }
  /// The link to a peer; created on first use. @return null: no memory.
  [[nodiscard]] Link* link(uint32_t dest_id) { return peers_.find_or_make(dest_id); }
  [[nodiscard]] Link* known_link(uint32_t dest_id) const {  ///< null: there is none yet
    return peers_.find(dest_id);
  }
  /// Process the card's events, which report peers that have gone.
  void look_for_gone() {
    for (Rail* const rail : rails_) {
      look_for_gone(*rail);
    }
  }
  /// The caller knows that the process at this destID is `instance`: end a session with any other
  /// instance.
  void meet_instance(uint32_t dest_id, uint32_t instance) {
    look_for_gone();
    sessions_.meet_instance(dest_id, instance);
  }
  /// Whether the card has reported that the process at this destID has gone, and no other has taken
  /// the destID since.
  [[nodiscard]] bool has_gone(uint32_t dest_id) const {
    return rails_.first().silence.has_gone(dest_id);
  }
  /// An access to the memory of a peer, by a path of a port with several rails, has failed.
  void on_failed(Path& path, pmd::Status status) { paths_.on_failed(path, status); }
  /// As in rio::Endpoint.
  [[nodiscard]] int reach(const std::string& address, uint32_t* dest_id) {
    return endpoints_.front()->reach(address, dest_id);
  }

  // This port.

  [[nodiscard]] uint32_t dest_id() const { return dest_id_; }
  /// Random number of this port, never 0: distinguishes processes that had the same destID.
  [[nodiscard]] uint32_t instance() const { return instance_; }
  /// As in rio::Endpoint.
  [[nodiscard]] std::string address() const { return endpoints_.front()->address(); }
  [[nodiscard]] Endpoint& endpoint() { return *endpoints_.front(); }
  /// The cards of the port.
  [[nodiscard]] const Rails& rails() const { return rails_; }
  /// @return 0, or -ENODEV: the card is gone, or was reset by another program.
  [[nodiscard]] int error() const { return rails_.error(); }
  [[nodiscard]] const PortConfig& config() const { return config_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  /// Lengths up to which copies of a message cost less time than a question and its answer.
  struct CopiedBytes {
    uint64_t always;  ///< the profile's, if it has one
    uint64_t read;    ///< to a peer whose card reads this port's memory
    uint64_t alone;   ///< if nothing else to its receiver is under way; 0: as the others
  };
  [[nodiscard]] CopiedBytes copied_bytes() const;
  /// Whether a peer and this port read each other's memory directly. The card is asked once in a
  /// session.
  [[nodiscard]] static bool reads_directly(Link& link) {
    std::optional<bool>& reads = link.large.reads;
    if (reads.has_value()) [[likely]] {
      return *reads;
    }
    const bool moves = link.path->rail.endpoint.moves_directly(link.path->dest_id);
    if (link.state == LinkState::kUp) {  // before, the cards may not have met
      reads = moves;
    }
    return moves;
  }
  /// Whether nothing to a peer is under way.
  [[nodiscard]] static bool is_idle(Link& link) {
    return link.large.sends.is_empty() && link.outbox->is_idle(link.dest_id());
  }
  [[nodiscard]] PortStats stats() const {
    PortStats all = stats_;
    for (const Rail* const rail : rails_) {
      all.copied += rail->outbox.copied();
      all.received += rail->intake.received();
    }
    all.woken = sleepers_.woken;
    all.overslept = sleepers_.overslept;
    return all;
  }
  /// Counts of one rail. @param rail below rails().count().
  [[nodiscard]] RailStats rail_stats(uint32_t rail) const { return paths_.news().stats(rail); }
  /// Hot. Changes of the rails, for RailEvents.
  [[nodiscard]] const RailNews& rail_news() const { return paths_.news(); }
  /// Add bytes that a layer above has copied to the statistics.
  void count_copied(uint64_t bytes) { stats_.copied += bytes; }
  /// Buffers that belong to no share.
  [[nodiscard]] uint32_t unshared() const { return inflows_.unshared(); }
  /// Access to the memory of peers; null: the card has no DMA queue. progress() advances its
  /// transfers.
  [[nodiscard]] Dma* dma() { return rails_.first().dma.get(); }
  /// Registrations of the user's memory.
  [[nodiscard]] Registrations& registrations() { return rails_.first().memory; }

  // Threads and sleep, for waiting.hpp.

  /// The longest sleep. It bounds the time until a missing card is noticed.
  static constexpr uint32_t kSleepBoundMs = 1000;

  /// Called by Guard at its beginning and end.
  void enter() { sleepers_.lock(); }
  void leave();
  /// A number that changes with everything that comes from the card. A send that found no room is
  /// worth another try once it has changed.
  [[nodiscard]] uint64_t activity() const;
  /// Do now all checks that progress() makes only every now and then.
  void check_all();
  /// Ask the cards for interrupts.
  void arm();
  /// Becomes readable when a card has raised an interrupt. @return descriptor; -ENOENT: the port
  /// was opened without sleeps.
  [[nodiscard]] int irq_fd() const {
    return irq_set_.valid() ? irq_set_.get() : endpoints_.front()->irq_fd();
  }
  /// Take the interrupts that woke the thread.
  void irq_ack() const;
  /// How long a sleep may last before work is due that no interrupt announces.
  [[nodiscard]] uint32_t sleep_bound_ms() const;
  /// Call its functions, and change its counters, under a Guard.
  [[nodiscard]] Sleepers& sleepers() { return sleepers_; }
  /// Whether the port's users sleep instead of polling all the time.
  [[nodiscard]] bool sleeps() const { return sleepers_.has_slept; }

 private:
  friend class MessageContext;
  /// Hot. send() by one of Outbox's ways to post.
  template <void (Outbox::*post)(Link&, const uint8_t*, uint32_t)>
  [[gnu::always_inline]] int send_by(const Route& route, const void* data, uint32_t bytes) {
    Outbox& outbox = *route.link->outbox;
    if (!outbox.may_send(route)) [[unlikely]] {
      return not_now(route);
    }
    uint8_t* const at = outbox.begin_message(route, bytes);
    if (bytes != 0) {
      std::memcpy(at + kHeaderBytes, data, bytes);
    }
    (outbox.*post)(*route.link, at, kHeaderBytes + bytes);
    return 0;
  }

  static constexpr uint32_t kCallsPerLook = 32;  // calls of progress() per check
  static constexpr uint32_t kCallsPerYield = 4;  // per look at whether to yield; divides the above
  static constexpr uint32_t kCallsPerRail = 16;  // of these per look at rails with no arrivals
  /// A caller that does not wait finds more, in the calls from one Patience::look() to the next.
  static constexpr uint64_t kNewsOfBusy = 64;
  static constexpr uint32_t kChecksPerPaths = 8;  // as long as all paths are up

  using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

  [[nodiscard]] static int open_on(Endpoints endpoints, const PortConfig& config,
                                   const Profile& profile, rail::RailPolicy policy,
                                   std::unique_ptr<MessagePort>* out);
  MessagePort(const PortConfig& config, const Profile& profile, Endpoints endpoints, uint64_t seed,
              uint32_t instance);
  [[nodiscard]] int start();
  [[nodiscard]] int join_irqs();
  [[nodiscard]] uint32_t progress_more();
  [[gnu::noinline]] [[nodiscard]] uint32_t take_from_each();
  void take_all();
  void look_for_gone(Rail& rail) {
    rail.silence.look_for_gone([this] { take_all(); });
  }
  void check(std::span<Rail* const> rails);
  [[nodiscard]] PortObjects objects();
  [[gnu::noinline]] [[nodiscard]] int not_now(const Route& route);
  [[gnu::noinline]] void check_periodically();
  void check_next();
  void plan_look();
  [[nodiscard]] uint64_t take_news();
  void give_way(Patience& patience);

  std::vector<std::shared_ptr<void>> taken_over_;  // destroyed last
  Endpoints endpoints_;
  base::Fd irq_set_;  // epoll: the interrupts of several cards

  // Used for each message.
  Rails rails_;
  Buffers buffers_;
  Peers peers_;
  Paths paths_;
  uint32_t until_look_ = kCallsPerLook;
  Large large_;
  ContextSlots contexts_{};

  // Used less often. An object may hold references to objects constructed after it.
  Inflows inflows_;
  ListeningClock listening_;
  Retries retries_;
  LargeControl control_;
  Speaker speaker_;
  Sessions sessions_;
  Sorter sorter_;
  Sleepers sleepers_;
  uint32_t until_check_ = kCallsPerLook;
  uint32_t step_ = kCallsPerLook;  // until_look_ when it was set
  bool gives_way_ = false;         // the thread that holds the lock yields when it leaves
  uint64_t activity_ = 0;          // of the last take_news()
  uint32_t until_all_ = kCallsPerRail;
  uint32_t until_paths_ = kChecksPerPaths;
  Rail* busy_rail_ = &rails_.first();  // gave the last arrivals
  uint32_t check_rail_ = 0;            // checked last
  PortStats stats_;
  PortConfig config_;
  Profile profile_;
  uint32_t dest_id_;
  uint32_t instance_;
};

}  // namespace rio::msg
