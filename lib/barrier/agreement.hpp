/// @file
/// The creation of a group as a state machine without I/O: its members agree that they all mean the
/// same group, whether it runs on the card, and with which number.
///
/// Rank 0 decides: members of one machine meet in its memory, others on their cards if they can,
/// else in software. Each member sends a join to rank 0, rank 0 proposes, each member gets ready
/// and answers, and then rank 0 lets all run, so that no notification comes to a member that is not
/// ready. A member whose card has given the number away meanwhile denies it, and rank 0 proposes
/// another one; after some attempts it proposes software, so creations that disturb each other end.
/// No member waits for a number while it holds another one.
///
/// A join for which rank 0 had no room, since it had not begun, is answered with -EAGAIN. Its
/// sender joins again when the join of rank 0 comes.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/barrier/group_message.hpp"
#include "lib/barrier/id_set.hpp"

namespace rio::barrier {

/// Hash of the terms on which all members must agree: their addresses in the order of ranks, and
/// the text of the scheme.
[[nodiscard]] uint64_t agreement_digest(std::span<const uint32_t> members, uint64_t members_hash,
                                        std::string_view scheme);

/// One member's part of a creation. One thread.
class Agreement {
 public:
  struct Terms {
    uint64_t key = 0;
    uint64_t digest = 0;  ///< agreement_digest()
    uint32_t ranks = 1;
    uint32_t rank = 0;
    uint32_t ticket = 1;  ///< GroupMessage::ticket of this member, never 0
    uint32_t serial = 1;  ///< rank 0: number of the group, never 0
    uint32_t ways = 0;    ///< bits of GroupMessage::ways
    uint64_t node = 0;    ///< GroupMessage::node; 0: no memory to share
  };
  enum class Stage : uint8_t { kJoining, kLoading, kLoaded, kReady, kFailed };

  /// The actions that the agreement asks of its owner.
  class Ends {
   public:
    /// @param rank another member.
    virtual void send(uint32_t rank, const GroupMessage& message) = 0;
    /// Numbers that are free here.
    [[nodiscard]] virtual IdSet free_ids() = 0;
    /// Get ready, and then call loaded(), perhaps within this call. Rank 0 gets ready before the
    /// others, which need the memory that it makes. @param id a number to take, kMemoryId: shared
    /// memory, or kNoId: software. @return false: the number is not free, or there is no such
    /// memory.
    [[nodiscard]] virtual bool load(uint32_t id) = 0;
    /// Undo load(): the group will not run with this number.
    virtual void unload(uint32_t id) = 0;

   protected:
    ~Ends() = default;
  };

  /// @param ends outlives it.
  Agreement(const Terms& terms, Ends& ends);

  /// Join. Called once, before all others.
  void begin();
  /// A message of this creation has arrived. @param rank of the sender, as the message names it;
  /// below `ranks`, and not this member's.
  /// @return false: the message does not belong to this creation; nothing has changed.
  [[nodiscard]] bool receive(uint32_t rank, const GroupMessage& message);
  /// load() is done, or has failed. @param error 0: this member is ready.
  void loaded(int error);
  /// End the creation, and tell the others. Does nothing in the stages kReady and kFailed.
  /// @param culprit a rank, or kNoPeer.
  void fail(int error, uint32_t culprit);

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] bool is_creating() const { return stage_ < Stage::kReady; }
  /// Why the creation failed, in the stage kFailed; 0 before.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] uint32_t culprit() const { return culprit_; }
  /// The group's number on the card; kMemoryId: it meets in shared memory; kNoId: it runs in
  /// software, or nothing is loaded.
  [[nodiscard]] uint32_t id() const { return id_; }
  /// The group's serial number; 0: not known yet.
  [[nodiscard]] uint32_t serial() const { return serial_; }
  /// While creating. Rank 0: the lowest rank that has not joined or, if all have, that has not
  /// answered the proposal; other ranks: 0. kNoPeer: all have.
  [[nodiscard]] uint32_t missing() const;
  /// Rank 0: whether a rank has not joined.
  [[nodiscard]] bool has_not_joined(uint32_t rank) const { return tickets_[rank] == 0; }
  /// Rank 0, in the stage kFailed: tell a rank that joins only after the failure.
  /// @return false: that rank was told already, so its join is for another group.
  [[nodiscard]] bool tell_late(uint32_t rank, uint32_t ticket);

 private:
  [[nodiscard]] bool is_root() const { return terms_.rank == 0; }
  [[nodiscard]] GroupMessage message(What what) const;
  [[nodiscard]] bool take_join(uint32_t rank, const GroupMessage& join);
  [[nodiscard]] bool take_answer(uint32_t rank, const GroupMessage& answer);
  [[nodiscard]] bool take_proposal(const GroupMessage& proposal);
  [[nodiscard]] bool take_failure(uint32_t rank, const GroupMessage& failure);
  void note_join();
  void note_answer(uint32_t rank, const IdSet* denied);
  void propose();
  void prepare(uint32_t id);
  void run();
  void end(int error, uint32_t culprit);

  Terms terms_;
  Ends& ends_;
  Stage stage_ = Stage::kJoining;
  int error_ = 0;
  uint32_t culprit_ = kNoPeer;
  uint32_t serial_ = 0;
  uint32_t id_ = kNoId;
  bool is_loaded_ = false;    // load() has succeeded, for id_
  bool is_join_due_ = false;  // rank 0 had no room for the last one
  uint32_t attempt_ = 0;

  // Of rank 0.
  std::vector<uint32_t> tickets_;  // 0: the rank has not joined
  std::vector<bool> answered_;     // in this attempt
  uint32_t joins_ = 0;
  uint32_t answers_ = 0;
  bool is_denied_ = false;
  IdSet ids_;
  uint32_t ways_;
};

}  // namespace rio::barrier
