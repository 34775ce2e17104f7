/// @file
/// The folder of sockets, named by destID, in which the members of a fabric find each other.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/shared_memory.hpp"
#include "base/trouble.hpp"

namespace rio::wire::shm {

/// A request for destIDs in a fabric.
struct Seat {
  std::string fabric;  ///< name: 1 to 63 letters, digits, '_', '.' or '-'; not that of a folder
  uint32_t id = 0;     ///< the first; 0: the lowest free ones from 1
  /// Not 0, without a board: if `id` or one behind it is taken, try the next ones in such steps,
  /// within 16 bits, then from `id_step` on.
  uint32_t id_step = 0;
  uint32_t ids = 1;         ///< number of consecutive destIDs
  std::string board = {};   ///< not empty: the ids belong to a board of `ids` queue pairs,
  uint32_t queue_pair = 0;  ///< of which this member is the one with this index
  bool pull = true;         ///< copy long messages only once, if the system allows it
  /// Memory that partners may map; null: none, and theirs is not mapped either.
  std::shared_ptr<const base::ReadableAreas> areas = nullptr;
};

/// A fabric's folder: riopmd-UID/FABRIC below $RIO_RUNTIME_DIR, or else /dev/shm, for its user
/// only. A member listens at a socket for each of its destIDs. A socket without a listener means
/// that its member is dead, so nothing that a killed process left is trusted. Changes are made
/// under a lock. Control path, one thread at a time.
class Directory {
 public:
  /// Find or make the folder and take a seat in it; removes the files of dead members. @return 0;
  /// -EBUSY (a destID is taken), -EINVAL (the board has another size), -EPERM (the folder is not
  /// ours alone), -ETIMEDOUT (another process holds the lock), -errno; `error` gives the cause.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<Directory>* out,
                                std::string* error);
  /// Leaves; the last member removes the folder. Does nothing in a process forked after join(): its
  /// parent is still a member.
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// First destID of the card; it has Seat::ids of them.
  [[nodiscard]] uint32_t first_id() const { return first_; }
  [[nodiscard]] uint32_t ids() const { return ids_; }
  /// Non-blocking, SOCK_SEQPACKET; belongs to this object.
  [[nodiscard]] const base::Fd& listener() const { return listener_; }

  enum class Called : uint8_t {
    kConnected,
    kNoMember,  ///< no living process has the destID
    kBusy,      ///< too many processes are connecting to that one: try again
    kTrouble,   ///< this process cannot connect: `trouble` is the cause
  };
  /// Connect to the process that has a destID. Any thread. @param trouble may be null.
  [[nodiscard]] Called connect(uint32_t id, base::Fd* out, base::Trouble* trouble) const;

 private:
  /// A board's file: the destIDs of the board.
  struct Board {
    std::string name;
    uint32_t first;
    uint32_t ids;
  };

  // Results of a step of joining besides 0 and -errno, of which two would be EAGAIN.
  static constexpr int kHeld = 1;  ///< another process has the lock
  static constexpr int kGone = 2;  ///< the folder was removed: start again

  Directory() : owner_(getpid()) {}
  void leave();
  [[nodiscard]] static int open_own_folder(int at, bool in_base, const std::string& name,
                                           const std::string& path, base::Fd* out,
                                           std::string* error);
  [[nodiscard]] int open_folder(const std::string& fabric, std::string* error);
  [[nodiscard]] int lock(std::string* error);
  [[nodiscard]] int try_lock(std::string* error);
  void unlock();
  [[nodiscard]] int64_t last_locked() const;
  [[nodiscard]] int take(const Seat& seat, std::string* error);
  [[nodiscard]] int take_board(const Seat& seat, const std::set<uint32_t>& taken,
                               std::vector<Board>& boards, uint32_t* first, std::string* error);
  [[nodiscard]] int listen_at(uint32_t id, std::string* error);
  [[nodiscard]] bool may_live(uint32_t id, base::Trouble* trouble) const;
  [[nodiscard]] int sweep(std::set<uint32_t>* live, std::string* error) const;
  [[nodiscard]] std::vector<Board> sweep_boards(const std::set<uint32_t>& live) const;
  [[nodiscard]] int write_board(const Board& board) const;
  [[nodiscard]] bool anybody() const;
  void remove_folder();
  void sweep_fabrics() const;

  std::string user_path_;
  std::string path_;    // for messages
  std::string fabric_;  // its name
  base::Fd parent_;     // the user's folder
  base::Fd folder_;
  base::Fd lock_;  // empty: not held
  base::Fd listener_;
  uint32_t first_ = 0;
  uint32_t ids_ = 0;
  const int owner_;  // pid of the process that joined; a forked child neither leaves nor unlocks
};

}  // namespace rio::wire::shm
