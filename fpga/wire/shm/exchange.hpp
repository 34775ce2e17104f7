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

#include "base/trouble.hpp"
#include "fpga/wire/member.hpp"
#include "fpga/wire/poke_target.hpp"
#include "fpga/wire/shm/directory.hpp"
#include "fpga/wire/shm/link.hpp"
#include "fpga/wire/shm/protocol.hpp"
#include "fpga/wire/shm/troubles.hpp"

namespace rio::wire::shm {

/// News from the thread, in their order.
struct News {
  enum Kind : uint8_t {
    kCame,    ///< `link` is up
    kGone,    ///< `link` is down: the process has died, or left
    kNobody,  ///< no member has destID `id`
  };
  Kind kind = kNobody;
  uint32_t id = 0;
  std::shared_ptr<Link> link;
};

class Exchange {
 public:
  /// @param news is set when there is news; outlives the object.
  Exchange(std::unique_ptr<Directory> directory, std::atomic<bool>* news);
  /// Ends the thread and leaves the fabric; not in a process that was forked since.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  /// Begin. @return 0, -errno; `error` tells the cause.
  [[nodiscard]] int start(std::string* error);

  // Any thread.
  /// Find who has this destID: kCame or kNobody will be said, or kCame was.
  void want(uint32_t id);
  /// Its owner does not keep the rules: end it. kGone will be said.
  void cut(const std::shared_ptr<Link>& link);
  /// @return false: no news.
  [[nodiscard]] bool take(News* out);
  /// `poke` is called by the thread after it had news, or was rung for; null: it calls no function
  /// from now on.
  void set_poke(Member::Poke poke, void* ctx) { poke_.set(poke, ctx); }

  void poke_soon();

  /// Report to the user, once, by next_trouble(). Any thread.
  void tell(const std::string& text);
  /// Member::next_trouble(): failures of this process. Any thread.
  [[nodiscard]] bool next_trouble(std::string* text) { return troubles_.next(text); }
  /// Why this process could not connect to a destID at its last try, -errno; 0: it could, or no
  /// process has the destID. Any thread.
  [[nodiscard]] int why_unreachable(uint32_t id) { return troubles_.why_unreachable(id); }

  [[nodiscard]] const Directory& directory() const { return *directory_; }

 private:
  using Clock = std::chrono::steady_clock;
  using LinkPtr = std::shared_ptr<Link>;

  /// A destID that a sender waits for.
  struct Wanted {
    uint32_t tries = 0;
    Clock::time_point next = {};
    int trouble = 0;  // of this process at the last try, -errno
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
  [[nodiscard]] base::Trouble try_out();
  void call(uint32_t id, Wanted& wanted, bool* nobody);
  void give_up(uint32_t id, int trouble);
  void hear_nothing(const base::Trouble& trouble);
  void note(const base::Trouble& trouble);
  void note(const base::Trouble& trouble, const Link& link);
  void accept();
  void on_message(const LinkPtr& link);
  [[nodiscard]] bool on_greeting(const LinkPtr& link, const Greeting& greeting,
                                 std::vector<base::Fd>& fds, base::Trouble* trouble);
  [[nodiscard]] bool settle_others(const LinkPtr& link, const Greeting& greeting);
  [[nodiscard]] bool know(Link& link, base::Trouble* trouble);
  [[nodiscard]] bool say(const Link& link, Say what, const base::Fd* memory,
                         base::Trouble* trouble) const;
  [[nodiscard]] bool up(const LinkPtr& link, base::Trouble* trouble);
  void down(const LinkPtr& link);
  void post(News news);
  [[nodiscard]] base::Trouble watch_link(const LinkPtr& link);
  [[nodiscard]] base::Trouble watch(int fd, Fdkind kind, const LinkPtr& link);
  void forget(int fd);

  std::unique_ptr<Directory> directory_;
  int owner_;  // pid
  uint64_t nonce_ = 0;
  Troubles troubles_;
  base::Fd epoll_;
  base::Fd order_;  // eventfd: orders_ has something
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

  PokeTarget poke_;
};

}  // namespace rio::wire::shm
