// A server on UDP is killed and started again at its port at once. Its client asks, and waits for
// the answer or for the end of the session, however long that takes. Processes on loopback.
//
//   udp_restart [RUNS]
//
// Prints {"runs": RUNS, "worst_s": …, "median_s": …}: seconds from the kill until the client has
// an answer of the new server. Exit code: 0; 1: a run did not end within a minute, and `runs` says
// how many did.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lib/api/riomsg.hpp"

namespace rio::bench {
namespace {

constexpr uint32_t kServer = 1;
constexpr uint32_t kClient = 2;
constexpr int kGivenUpMs = 60'000;
constexpr uint32_t kWaitMs = 1000;

[[noreturn]] void die(const char* what, int error) {
  std::fprintf(stderr, "udp_restart: %s: %d\n", what, error);
  std::_Exit(2);
}

[[nodiscard]] int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A members file for two members, at ports that are free now.
class Fabric {
 public:
  Fabric() {
    if (mkdtemp(folder_) == nullptr) {
      die(folder_, errno);
    }
    int sockets[2];
    std::ofstream file(path());
    for (uint32_t id = kServer; id <= kClient; ++id) {
      const int any = sockets[id - 1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t bytes = sizeof(at);
      if (bind(any, reinterpret_cast<sockaddr*>(&at), bytes) != 0 ||
          getsockname(any, reinterpret_cast<sockaddr*>(&at), &bytes) != 0) {
        die("socket", errno);
      }
      file << id << " 127.0.0.1:" << ntohs(at.sin_port) << "\n";
    }
    close(sockets[0]);
    close(sockets[1]);
  }
  ~Fabric() {
    unlink(path().c_str());
    rmdir(folder_);
  }
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  [[nodiscard]] std::string card(uint32_t id) const {
    return "udp:restart,id=" + std::to_string(id) + ",members=" + path();
  }

 private:
  [[nodiscard]] std::string path() const { return std::string(folder_) + "/members"; }
  char folder_[32] = "/tmp/udp-restart-XXXXXX";
};

struct Side {
  explicit Side(const std::string& card) {
    rio_msg_options options = api::msg_options();
    options.sleeps = 1;
    int rc = api::Port::open(card, options, &port);
    rc = rc != 0 ? rc : api::Context::open(port, 0, &context);
    if (rc != 0) {
      die(card.c_str(), rc);
    }
  }
  api::Port port;
  api::Context context;
};

/// Answers with the process ID.
[[noreturn]] void serve(const std::string& card) {
  Side side(card);
  const pid_t self = getpid();
  for (;;) {
    api::Message message;
    if (side.context.receive(&message) != 1) {
      static_cast<void>(side.context.wait(kWaitMs));
      continue;
    }
    while (side.context.send(message.source(), std::as_bytes(std::span(&self, 1))) == -EAGAIN) {
      static_cast<void>(side.context.wait(kWaitMs));
    }
  }
}

/// The client's report that a new server has answered.
struct Word {
  pid_t server;
  int64_t when_ns;
};

/// Sends a request, and the next one only after an answer or after the end of the session.
[[noreturn]] void ask(const std::string& card, int tell) {
  Side side(card);
  const rio_msg_address server = rio_msg_address_of(kServer, 0);
  pid_t last = 0;
  for (bool asked = false;;) {
    while (!asked) {
      const int rc = side.context.send(server, std::span<const std::byte>());
      asked = rc == 0;
      if (rc == -EAGAIN) {
        static_cast<void>(side.context.wait(kWaitMs));
      }
    }
    static_cast<void>(side.context.wait(kWaitMs));
    rio_msg_peer_event over{};
    asked = asked && side.port.next_peer_event(&over) != 1;
    api::Message answer;
    if (side.context.receive(&answer) != 1 || answer.bytes().size() != sizeof(pid_t)) {
      continue;
    }
    asked = false;
    const pid_t from = *reinterpret_cast<const pid_t*>(answer.bytes().data());
    const Word word = {from, now_ns()};
    if (std::exchange(last, from) != from && write(tell, &word, sizeof(word)) != sizeof(word)) {
      std::_Exit(0);
    }
  }
}

[[nodiscard]] pid_t start(const std::function<void()>& run) {
  const pid_t child = fork();
  if (child < 0) {
    die("fork", errno);
  }
  if (child == 0) {
    run();
  }
  return child;
}

void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// @return false: no report within a minute.
[[nodiscard]] bool hear(int from, pid_t server, Word* out) {
  do {
    pollfd one{from, POLLIN, 0};
    if (poll(&one, 1, kGivenUpMs) != 1 || read(from, out, sizeof(*out)) != sizeof(*out)) {
      return false;
    }
  } while (out->server != server);
  return true;
}

int main(size_t runs) {
  const Fabric fabric;
  int fds[2];
  if (pipe(fds) != 0) {
    die("pipe", errno);
  }
  const auto server = [&] { serve(fabric.card(kServer)); };
  const pid_t client = start([&] { ask(fabric.card(kClient), fds[1]); });
  pid_t serves = start(server);
  std::mt19937 random(1);
  std::vector<double> seconds;
  Word word{};
  bool good = hear(fds[0], serves, &word);
  while (good && seconds.size() < runs) {
    usleep(static_cast<useconds_t>(random() % 20'000));  // between request and answer
    const int64_t killed_ns = now_ns();
    end(serves);
    serves = start(server);
    good = hear(fds[0], serves, &word);
    if (good) {
      seconds.push_back(static_cast<double>(word.when_ns - killed_ns) / 1e9);
    }
  }
  end(serves);
  end(client);
  std::sort(seconds.begin(), seconds.end());
  const size_t count = seconds.size();
  std::printf("{\"runs\": %zu, \"worst_s\": %.4f, \"median_s\": %.4f}\n", count,
              count == 0 ? 0.0 : seconds.back(), count == 0 ? 0.0 : seconds[count / 2]);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  const long runs = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 50;
  return rio::bench::main(static_cast<size_t>(std::clamp(runs, 1L, 100'000L)));
}
