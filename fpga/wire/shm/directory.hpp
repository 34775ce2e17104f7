/// @file
/// Where the members of a fabric find each other: a folder of sockets, named by destID.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/trouble.hpp"

namespace rio::wire::shm {

/// Which destIDs a member wants.
struct Seat {
  std::string fabric;  ///< name, 1 to 63 letters, digits, '_', '.' or '-'; no folder's name
  uint32_t id = 0;     ///< the first; 0: the lowest free ones from 1
  /// Not 0, and no board: where one of `id` and those behind it is taken, the next that are free,
  /// by such steps, within 16 bits; from `id_step` on once there are none above.
  uint32_t id_step = 0;
  uint32_t ids = 1;         ///< how many in a row
  std::string board = {};   ///< not empty: these ids are those of a board of `ids` queue pairs,
  uint32_t queue_pair = 0;  ///< and the member is this one of them
  bool pull = true;         ///< long messages are copied once where the system allows it
};

/// A fabric's folder: $RIO_RUNTIME_DIR, or else /dev/shm, then riopmd-UID/FABRIC, for its user
/// only. A member listens at a socket for each of its destIDs. A socket that no process listens at
/// tells the others that its member is dead, so nothing that a killed process leaves has to be
/// believed. Changes are made with a lock held. Control path, one thread at a time.
class Directory {
 public:
  /// Find or make the folder and take a seat in it; removes the files of dead members.
  /// @return 0; -EBUSY (a destID is taken), -EINVAL (the board has another size), -EPERM (the
  /// folder is not ours alone), -ETIMEDOUT (another process holds the lock), -errno; `error` says
  /// what and why.
  [[nodiscard]] static int join(const Seat& seat, std::unique_ptr<Directory>* out,
                                std::string* error);
  /// Leaves; the last member removes the folder. Nothing in a process that was forked after
  /// join(): its parent is still there.
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// The destIDs that the card got: `ids` of them from `first`.
  [[nodiscard]] uint32_t first_id() const { return first_; }
  [[nodiscard]] uint32_t ids() const { return ids_; }
  /// Non-blocking, SOCK_SEQPACKET, of this object.
  [[nodiscard]] const base::Fd& listener() const { return listener_; }

  /// Result of connect().
  enum class Called : uint8_t {
    kConnected,
    kNobody,   ///< no living process has the destID
    kBusy,     ///< too many processes are connecting to it: try again
    kTrouble,  ///< this process cannot connect: `trouble` tells the cause
  };
  /// Connect to the process that has a destID; any thread. @param trouble may be null.
  [[nodiscard]] Called connect(uint32_t id, base::Fd* out, base::Trouble* trouble) const;

 private:
  /// A board's file: which destIDs are its.
  struct Board {
    std::string name;
    uint32_t first;
    uint32_t ids;
  };

  /// How far a step of joining got. An errno could not tell: two of these would be EAGAIN.
  enum class Step : uint8_t {
    kDone,
    kHeld,    ///< another process has the lock
    kGone,    ///< the folder was removed: begin again
    kFailed,  ///< `rc` is -errno, `error` tells the cause
  };

  Directory() : owner_(getpid()) {}
  void leave();
  [[nodiscard]] static Step open_own_folder(int at, bool in_base, const std::string& name,
                                            const std::string& path, base::Fd* out, int* rc,
                                            std::string* error);
  [[nodiscard]] Step open_folder(const std::string& fabric, int* rc, std::string* error);
  [[nodiscard]] Step lock(int* rc, std::string* error);
  [[nodiscard]] Step try_lock(int* rc, std::string* error);
  void unlock();
  [[nodiscard]] int64_t last_locked() const;
  [[nodiscard]] int take(const Seat& seat, std::string* error);
  [[nodiscard]] int take_board(const Seat& seat, const std::set<uint32_t>& taken,
                               std::vector<Board>& boards, uint32_t* first, std::string* error);
  [[nodiscard]] int listen_at(uint32_t id, std::string* error);
  [[nodiscard]] bool may_live(uint32_t id, base::Trouble* trouble) const;
  [[nodiscard]] std::vector<std::string> names() const;
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
  base::Fd lock_;  // closed: not held
  base::Fd listener_;
  uint32_t first_ = 0;
  uint32_t ids_ = 0;
  const int owner_;  // pid of who has joined; a child neither leaves nor unlocks
};

}  // namespace rio::wire::shm
