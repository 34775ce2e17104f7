/// @file
/// The one thread of a member: it connects to others, is called by them, and hears from the kernel
/// when one has died. It sleeps otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fpga/sim/member.hpp"
#include "fpga/sim/shm/directory.hpp"
#include "fpga/sim/shm/link.hpp"
#include "fpga/sim/shm/protocol.hpp"

namespace rio::sim::shm {

/// What the thread has to say, in its order.
struct News {
  enum Kind : uint8_t {
    kCame,    ///< `link` is up
    kGone,    ///< `link` is down: the process has died, or left
    kNobody,  ///< nobody has destID `id`
  };
  Kind kind = kNobody;
  uint32_t id = 0;
  std::shared_ptr<Link> link;
};

class Exchange {
 public:
  using Poke = Member::Poke;

  /// @param news is set when there is news; outlives the object.
  Exchange(std::unique_ptr<Directory> directory, std::atomic<bool>* news);
  /// Ends the thread and leaves the fabric; not in a process that was forked since.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  /// Begin. @return 0, -errno; `error` says what and why.
  [[nodiscard]] int start(std::string* error);

  // Any thread.
  /// Find who has this destID: kCame or kNobody will be said, or kCame was.
  void want(uint32_t id);
  /// Its owner does not keep the rules: end it. kGone will be said.
  void cut(const std::shared_ptr<Link>& link);
  /// @return false: no news.
  [[nodiscard]] bool take(News* out);
  /// `poke` is called by the thread after it had news, or was rung for; null: by nobody any more,
  /// from now on.
  void set_poke(Poke poke, void* ctx);

  void poke_soon();

  /// -errno of what this process had too little of when it last tried to connect (-EMFILE,
  /// -ENFILE: descriptors; -ENOMEM, -ENOSPC: memory); 0: nothing. Any thread.
  [[nodiscard]] int lacking() const { return lacking_.load(std::memory_order_relaxed); }

  [[nodiscard]] const Directory& directory() const { return *directory_; }

 private:
  using Clock = std::chrono::steady_clock;
  using LinkPtr = std::shared_ptr<Link>;

  /// A destID that somebody waits for.
  struct Wanted {
    uint32_t tries = 0;
    Clock::time_point next = {};
  };
  enum class Fdkind : uint8_t { kSocket, kProcess, kBell };
  struct Watched {
    Fdkind kind;
    LinkPtr link;
  };

  void run(const std::stop_token& stop);
  void on_event(int fd);
  void take_orders();
  void call_wanted();
  [[nodiscard]] int timeout_ms() const;
  void call(uint32_t id, Wanted& wanted, bool* nobody);
  [[nodiscard]] bool lacks(int rc);
  void accept();
  void on_message(const LinkPtr& link);
  [[nodiscard]] bool on_greeting(const LinkPtr& link, const Greeting& greeting,
                                 std::vector<Fd>& fds);
  [[nodiscard]] bool may_be(const Link& link, const Greeting& greeting) const;
  [[nodiscard]] bool settle_others(const LinkPtr& link, const Greeting& greeting);
  [[nodiscard]] bool know(Link& link) const;
  [[nodiscard]] int say(const Link& link, Say what, const Fd* memory) const;
  void up(const LinkPtr& link);
  void down(const LinkPtr& link);
  void post(News news);
  [[nodiscard]] int watch(int fd, Fdkind kind, const LinkPtr& link);
  void forget(int fd);

  std::unique_ptr<Directory> directory_;
  int owner_;  // pid
  std::atomic<int> lacking_{0};
  uint64_t nonce_ = 0;
  Fd epoll_;
  Fd order_;  // eventfd: orders_ has something
  std::jthread thread_;

  // Of the thread.
  std::map<int, Watched> watched_;
  std::vector<LinkPtr> links_;
  std::map<uint32_t, Wanted> wanted_;
  bool rung_ = false;
  bool again_ = false;

  std::mutex mutex_;
  std::vector<uint32_t> want_orders_;
  std::vector<LinkPtr> cut_orders_;
  bool poke_order_ = false;
  std::deque<News> news_;
  std::atomic<bool>* news_flag_;

  std::mutex poke_mutex_;
  Poke poke_ = nullptr;
  void* poke_ctx_ = nullptr;
};

}  // namespace rio::sim::shm
