/// @file
/// Groups of members that meet in barriers: a member passes a barrier once all members have arrived
/// at it. Members are contexts of message ports, one a card.
///
/// Functions give 0 (or what they say) or -errno. A group that has failed stays so: every later
/// call gives the same error, and failure() says which member was the cause.
///
/// Thread rule: calls of a BarrierContext and its groups are made as those of a
/// msg::MessageContext: on the port's thread, or under its msg::Guard; the functions that wait take
/// the Guard themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/barrier/scheme.hpp"
#include "lib/msg/address.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::barrier {

/// Most bytes that a member of a group shows the others at a barrier.
inline constexpr uint32_t kShownMost = 512;

/// How the members of a group meet.
enum class Way : uint8_t {
  kAny,       ///< memory, if all members are on one machine; else the card, if all members' cards
              ///< have the engine and a free number; else software
  kCard,      ///< the card's barrier engine; nothing needs the members' polls
  kSoftware,  ///< messages of the contexts; each member has to poll, or wait
  kMemory,    ///< memory that the processes of one user on one machine share; needs no polls
};

/// The terms of a group. All members give the same ones, except `create_ms` and `deadline_ms`.
struct GroupOptions {
  /// Tells apart groups that have a member in common. A key is free again at a member once it has
  /// destroyed its part of the group, or creating it has failed there.
  uint64_t key = 0;
  Scheme scheme = TwoWay{};
  /// Hash of the list of members in a form that is the same at all of them; 0: compare their
  /// addresses. On cards of "udp:" these differ, since each member has destIDs of its own for the
  /// others: with 0 only the number of members is compared there.
  uint64_t members_hash = 0;
  Way way = Way::kAny;
  /// How long to wait for the other members, in ms; ranks other than 0 wait for a quarter longer,
  /// so that rank 0, which knows who is missing, tells them. 1 to 3,600,000.
  uint32_t create_ms = 10'000;
  /// A barrier that has not ended this long after this member's arrival fails, and the group with
  /// it, in ms; 0: it waits for as long as all members live. Checked by one of 32 polls.
  uint32_t deadline_ms = 0;
};

/// Why a group has failed.
struct Failure {
  /// 0: it has not. -ECONNRESET, -EHOSTUNREACH, -ETIMEDOUT, etc. of lib/msg: the member has gone or
  /// does not answer. -ECONNREFUSED: it has left the group. -ETIME: its deadline has passed.
  /// -EINVAL: it names other members or terms. -ETIMEDOUT while creating: it has not joined.
  /// -ENOTSUP: there is no way that all members have; logged where it is missing.
  int error = 0;
  uint32_t rank = kNoPeer;  ///< the member that was the cause; kNoPeer: not known
};

struct BarrierStats {
  uint64_t passed = 0;  ///< barriers; in shared memory the last one of a group counts at the next
  uint64_t notifications = 0;  ///< received
  uint64_t early = 0;          ///< of them: before this member had arrived
  uint64_t foreign = 0;  ///< dropped: of no group here, malformed, or of a peer that is not due
  uint64_t failed = 0;   ///< groups
};

class Group;

/// A context of a message port by which groups are created, and which carries the barriers that run
/// in software. Any number of groups.
class BarrierContext {
 public:
  /// @param port outlives it. @param number of the context, below msg::kContexts.
  /// @return 0, or as msg::MessageContext::create().
  [[nodiscard]] static int create(msg::MessagePort& port, uint16_t number,
                                  std::unique_ptr<BarrierContext>* out);
  /// All groups must have been destroyed. Messages to peers that are still waiting are lost, so
  /// call flush() before.
  virtual ~BarrierContext() = default;
  BarrierContext(const BarrierContext&) = delete;
  BarrierContext& operator=(const BarrierContext&) = delete;

  /// The address that peers use.
  [[nodiscard]] virtual msg::Address self() const = 0;
  [[nodiscard]] virtual msg::MessagePort& port() = 0;

  /// Begin to create a group; all its members do. Returns at once; Group::ready() says when all
  /// have agreed. Members may create several groups at once, in any order.
  /// @param members their addresses in the order of ranks, one a card; the same list at all
  /// members. Copied. @param rank of this member: members[rank] is self().
  /// @param out destroyed before the context.
  /// @return 0; -EINVAL (members, rank, options; logged), -EEXIST (the key; logged), -E2BIG (more
  /// rounds than a schedule has), -ENOMEM.
  [[nodiscard]] virtual int create_group(std::span<const msg::Address> members, uint32_t rank,
                                         const GroupOptions& options,
                                         std::unique_ptr<Group>* out) = 0;

  /// Hot. Let the port and all groups work. Bounded.
  virtual void progress() = 0;
  /// Hot. The part of progress() that is this context's own, for a caller that makes progress of
  /// the port itself.
  virtual void attend() = 0;
  /// Make progress until everything that has to be told to peers has arrived or failed.
  /// @return 0, -ETIMEDOUT, -ENODEV.
  [[nodiscard]] virtual int flush(uint32_t timeout_ms) = 0;
  [[nodiscard]] virtual BarrierStats stats() const = 0;

 protected:
  BarrierContext() = default;
};

/// This member's part of a group. Persistent: created once, it runs any number of barriers, one
/// after the other.
class Group {
 public:
  /// Leave the group. Another member that arrives at a later barrier than this one has is told, and
  /// so is everyone if this member leaves a barrier that it has arrived at and not passed. Does not
  /// wait; what has to be told leaves with the context's progress.
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Whether all members have agreed; makes no progress. @return 1: yes, arrive() may be called; 0:
  /// not yet; or the error of failure().
  [[nodiscard]] virtual int ready() const = 0;
  /// Wait until the group is ready. @return 1; 0: not within the time; the error; -ENODEV.
  [[nodiscard]] virtual int wait_ready(uint32_t timeout_ms) = 0;

  /// Hot. Arrive at the next barrier. Returns at once: the caller computes, and tests later. On the
  /// card and in shared memory nothing needs its polls; in software it sends the notifications of
  /// later rounds in its calls of progress(), and other members wait for these.
  /// @return 0; -EAGAIN: not ready(); -EBUSY: the last barrier has not ended; the error of
  /// failure().
  [[nodiscard]] int arrive() { return arrive({}); }
  /// Hot. Arrive, and show bytes to all members: shown() has them once the barrier has ended. All
  /// members show as many. @param shows at most shown_most(). Copied.
  /// @return as arrive(); -EMSGSIZE: too many.
  [[nodiscard]] virtual int arrive(std::span<const uint8_t> shows) = 0;
  /// How many bytes arrive() shows; 0 before the group is ready, and where the members do not meet
  /// in memory.
  [[nodiscard]] virtual uint32_t shown_most() const = 0;
  /// Hot. The bytes that a member has shown at the barrier that has ended, until this member
  /// arrives at the next one. Written by another process. @pre shown_most() is not 0, and test()
  /// has returned 1 since arrive(). @param rank below ranks(). @return of another length than this
  /// member has shown: the bytes are not valid.
  [[nodiscard]] virtual std::span<const uint8_t> shown(uint32_t rank) const = 0;
  /// Hot. Whether the barrier that this member last arrived at has ended; makes no progress.
  /// @return 1: all members have arrived (also if the group has failed since, and before the first
  /// arrival); 0: not yet; the error of failure(): perhaps not all members have arrived.
  [[nodiscard]] virtual int test() const = 0;
  /// Wait for that barrier. Sleeps if the port was opened for that, else polls. @return as test();
  /// 0: not within the time, and the barrier goes on; -ENODEV.
  [[nodiscard]] virtual int wait(uint32_t timeout_ms) = 0;
  /// Arrive and wait. @return as arrive() if that fails; else as wait().
  [[nodiscard]] int barrier(uint32_t timeout_ms) {
    const int rc = arrive();
    return rc != 0 ? rc : wait(timeout_ms);
  }

  [[nodiscard]] virtual Failure failure() const = 0;
  [[nodiscard]] virtual uint32_t ranks() const = 0;
  [[nodiscard]] virtual uint32_t rank() const = 0;
  /// kMemory, kCard or kSoftware once it is ready; kAny before.
  [[nodiscard]] virtual Way way() const = 0;
  /// Number of barriers that this member has arrived at, modulo 2^32.
  [[nodiscard]] virtual uint32_t arrivals() const = 0;

 protected:
  Group() = default;
};

}  // namespace rio::barrier
