// Processes that send each other messages of both kinds are killed at any instant, and restart
// with the same destID. The survivors are not disturbed: messages between two survivors arrive
// once, in order and unchanged; messages from killed processes are valid, though some are missing.
//
// RIO_MSG_KILLS: number of kills, RIO_SEED: seed of the random instants, RIO_MSG_WIRE: shm or udp.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/env_number.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"
#include "tests/unit/lib/api/udp_fabric.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kSurvivors = 2;  // destIDs 1 and 2
constexpr uint32_t kMembers = 4;
constexpr uint32_t kContext = 0;
constexpr uint32_t kTag = 1;
constexpr uint32_t kEnough = 50;  // messages of each kind between survivors
constexpr size_t kLongest = 100000;

[[nodiscard]] uint32_t from_environment(const char* name, uint32_t otherwise) {
  return static_cast<uint32_t>(env_number(name, otherwise));
}

/// The head of each message; the bytes behind it follow from it.
struct Stamp {
  uint32_t from;
  uint32_t to;
  uint32_t life;  // process ID of the sender
  uint32_t number;
};

void fill(std::vector<std::byte>* bytes, const Stamp& stamp, size_t size_bytes) {
  bytes->assign(size_bytes, static_cast<std::byte>(stamp.number * 7 + stamp.from));
  std::memcpy(bytes->data(), &stamp, sizeof(stamp));
}

/// Sends to all others in turn until it is told to stop. Its exit code says what went wrong.
class Talker {
 public:
  /// @param enough is written to once this survivor has received enough from the other one.
  Talker(const std::string& card, uint32_t id, int stop_fd, const Pipe& enough)
      : id_(id),
        stop_fd_(stop_fd),
        enough_(enough),
        port_(open_port(card, 0, false, id % 2 == 0)) {}

  int run() {
    if (port_.get() == nullptr) {
      return 10;
    }
    context_ = open_context(port_, kContext);
    if (context_.accept_long(kLongest) != 0) {
      return 11;
    }
    long_in_.resize(kLongest);
    tag_ = open_tag(port_, kTag);
    in_.resize(kLongest);
    int code = post();
    for (uint32_t turn = 0; code == 0; ++turn) {
      if (turn % 256 == 0 && stopped()) {
        std::fprintf(stderr, "%u: %u and %u from the other survivor\n", id_, in_order_[kContext],
                     in_order_[kTag]);
        return 0;
      }
      code = one_turn(turn);
    }
    // Members that stop first end their sessions with this one: such errors are expected now.
    return stopped() && code >= 30 ? 0 : code;
  }

 private:
  [[nodiscard]] bool stopped() const {
    pollfd one{stop_fd_, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
  }
  [[nodiscard]] static bool survives(uint32_t id) { return id <= kSurvivors; }
  /// Whether a call that concerns this peer may have failed with this error.
  [[nodiscard]] bool allowed(uint32_t peer, int error) const {
    // Between two survivors errors are allowed only until they have met: the other may not run
    // yet.
    return !(survives(peer) && survives(id_) && met_) || error == 0 ||
           (error == -ECONNREFUSED && !met_);
  }

  int one_turn(uint32_t turn) {
    int code = send_message();
    code = code != 0 ? code : send_tagged();
    code = code != 0 ? code : receive_messages();
    code = code != 0 ? code : check_messages();
    code = code != 0 ? code : check_done();
    if (code == 0 && id_ % 2 == 0 && turn % 64 == 0) {
      static_cast<void>(context_.wait(1));
    }
    return code;
  }

  /// Every other message of a survivor goes to the other survivor.
  uint32_t next_peer(uint32_t* last, uint32_t* turn) const {
    if (survives(id_) && ++*turn % 2 == 0) {
      return kSurvivors + 1 - id_;
    }
    do {
      *last = *last % kMembers + 1;
    } while (*last == id_);
    return *last;
  }

  int send_message() {
    if (long_sending_ != nullptr) {
      return 0;
    }
    if (!trying_) {
      to_ = next_peer(&last_to_, &turn_);
      constexpr size_t kSizes[] = {sizeof(Stamp), 9000, 1500, kLongest, 3000};
      fill(&out_, {id_, to_, life_, ++sent_[kContext][to_]}, kSizes[sent_[kContext][to_] % 5]);
    }
    if (out_.size() > RIO_MSG_BYTES) {
      return send_long();
    }
    const int rc = context_.send(rio_msg_address_of(to_, kContext), out_);
    trying_ = rc == -EAGAIN &&
              ++tries_ < 1000;  // do not try for ever: the peer may be dead or not yet there
    return trying_ ? 0 : message_sent(rc);
  }
  int send_long() {
    const int rc = context_.send_any(rio_msg_address_of(to_, kContext), out_, nullptr,
                                     &long_sending_, nullptr);
    if (rc == 0) {
      return 0;
    }
    long_sending_ = nullptr;
    return message_sent(rc == 1 ? 0 : rc);
  }
  int message_sent(int status) {
    trying_ = false;
    tries_ = 0;
    sent_[kContext][to_] -= status != 0 ? 1 : 0;
    if (status != -EAGAIN && !allowed(to_, status)) {
      std::fprintf(stderr, "%u to %u: %s\n", id_, to_, rio_strerror(status));
      return 30;
    }
    return 0;
  }

  int send_tagged() {
    if (sending_ != nullptr) {
      return 0;
    }
    tag_to_ = next_peer(&last_tag_to_, &tag_turn_);
    const size_t sizes[] = {sizeof(Stamp), 500, 9000, kLongest};
    fill(&tag_out_, {id_, tag_to_, life_, ++sent_[kTag][tag_to_]}, sizes[sent_[kTag][tag_to_] % 4]);
    rio_tag_done done{};
    const int rc =
        tag_.send(rio_msg_address_of(tag_to_, kTag), 0, tag_out_, nullptr, &sending_, &done);
    if (rc != 0) {
      sending_ = nullptr;
      return sent(rc == 1 ? done.status : rc);
    }
    return 0;
  }
  int sent(int status) {
    sent_[kTag][tag_to_] -= status != 0 ? 1 : 0;
    if (!allowed(tag_to_, status)) {
      std::fprintf(stderr, "%u to %u, tagged: %s\n", id_, tag_to_, rio_strerror(status));
      return 31;
    }
    return 0;
  }

  int receive_messages() {
    while (taking_ == nullptr) {
      api::Message message;
      if (context_.receive(&message) != 1) {
        return 0;
      }
      if (message.is_long()) {
        if (const int code = take_long(&message); code != 0) {
          return code;
        }
        continue;
      }
      if (const int code = take(kContext, message.bytes(), message.source() >> 8); code != 0) {
        return code;
      }
    }
    return 0;
  }

  int take_long(api::Message* message) {
    rio_msg_done done{};
    const int rc = message->take(long_in_, nullptr, &taking_, &done);
    if (rc == 0) {
      return 0;
    }
    taking_ = nullptr;
    return rc == 1 ? taken(done) : 14;
  }
  int taken(const rio_msg_done& done) {
    // A message whose sender died while it was sending it.
    return done.status != 0
               ? 0
               : take(kContext, std::span(long_in_).first(done.size_bytes), done.peer >> 8);
  }
  int check_messages() {
    for (rio_msg_done done{}; context_.next_done(&done);) {
      (done.is_take != 0 ? taking_ : long_sending_) = nullptr;
      if (const int code = done.is_take != 0 ? taken(done) : message_sent(done.status); code != 0) {
        return code;
      }
    }
    return 0;
  }

  int post() {
    rio_tag_done done{};
    for (;;) {
      const int rc = tag_.receive({0, 0, RIO_TAG_ANY, 0}, in_, nullptr, &receiving_, &done);
      if (rc != 1) {
        return rc == 0 ? 0 : 12;
      }
      if (const int code = received(done); code != 0) {
        return code;
      }
    }
  }
  int received(const rio_tag_done& done) {
    // A message whose sender died while it was sending it.
    return done.status != 0 ? 0
                            : take(kTag, std::span(in_).first(done.size_bytes), done.source >> 8);
  }
  int check_done() {
    if (tag_.progress() != 0) {
      return 13;
    }
    for (rio_tag_done done{}; tag_.next_done(&done);) {
      int code = 0;
      if (done.is_receive != 0) {
        code = received(done);
        code = code != 0 ? code : post();
      } else {
        sending_ = nullptr;
        code = sent(done.status);
      }
      if (code != 0) {
        return code;
      }
    }
    return 0;
  }

  int take(uint32_t way, std::span<const std::byte> bytes, uint32_t source) {
    Stamp stamp{};
    if (bytes.size() < sizeof(stamp)) {
      return 20;
    }
    std::memcpy(&stamp, bytes.data(), sizeof(stamp));
    std::vector<std::byte> right;
    fill(&right, stamp, bytes.size());
    if (stamp.from != source || stamp.to != id_ ||
        std::memcmp(right.data(), bytes.data(), bytes.size()) != 0) {
      std::fprintf(stderr, "%u: nonsense from %u\n", id_, source);
      return 21;
    }
    Seen& seen = seen_[way][source];
    const bool between_survivors = survives(source) && survives(id_);
    // The numbers of one process ascend; some are missing where a session has ended.
    const bool follows = seen.life != stamp.life || stamp.number > seen.number;
    const bool next = seen.life == 0 || stamp.number == seen.number + 1;
    if (!follows || (between_survivors && met_ && !next)) {
      std::fprintf(stderr, "%u: number %u of %u after %u, way %u\n", id_, stamp.number, source,
                   seen.number, way);
      return 22;
    }
    seen = {stamp.life, stamp.number};
    if (between_survivors) {
      ++in_order_[way];
      if (!told_ && in_order_[kContext] >= kEnough && in_order_[kTag] >= kEnough) {
        told_ = true;
        enough_.tell();
      }
      met_ = in_order_[kContext] != 0 && in_order_[kTag] != 0;
    }
    return 0;
  }

  struct Seen {
    uint32_t life = 0;
    uint32_t number = 0;
  };

  uint32_t id_;
  int stop_fd_;
  const Pipe& enough_;
  bool told_ = false;
  uint32_t life_ = static_cast<uint32_t>(getpid());
  std::vector<std::byte> out_;
  std::vector<std::byte> tag_out_;  // owned by the library while it is being sent
  std::vector<std::byte> in_;
  std::vector<std::byte> long_in_;
  api::Port port_;
  api::Context context_;
  api::Tag tag_;
  rio_msg_request* long_sending_ = nullptr;
  rio_msg_request* taking_ = nullptr;
  rio_tag_request* sending_ = nullptr;
  rio_tag_request* receiving_ = nullptr;
  uint32_t to_ = 0;
  uint32_t tag_to_ = 0;
  uint32_t last_to_ = 0;
  uint32_t last_tag_to_ = 0;
  uint32_t turn_ = 0;
  uint32_t tag_turn_ = 0;
  bool trying_ = false;
  uint32_t tries_ = 0;
  bool met_ = false;  // the other survivor, by both ways
  uint32_t sent_[2][kMembers + 1] = {};
  uint32_t in_order_[2] = {};
  std::map<uint32_t, Seen> seen_[2];
};

/// The wire under test.
class Wire {
 public:
  [[nodiscard]] std::string card(uint32_t id) const {
    return udp_ ? fabric_.card(id) : "shm:kill,id=" + std::to_string(id);
  }

 private:
  const UdpFabric fabric_{kMembers};
  const bool udp_ = [] {
    const char* const wire = std::getenv("RIO_MSG_WIRE");
    return wire != nullptr && std::strcmp(wire, "udp") == 0;
  }();
};

[[nodiscard]] Child start(const Wire& wire, uint32_t id, const Pipe& stop, const Pipe& enough) {
  return Child([&, id] { return Talker(wire.card(id), id, stop.reader(), enough).run(); });
}

TEST(Kill, SurvivorsAreNotDisturbed) {
  TempDir folder;
  const Wire wire;
  setenv("RIO_RUNTIME_DIR", folder.at("").c_str(), 1);
  const uint32_t kills = from_environment("RIO_MSG_KILLS", 30);
  const uint32_t seed = rio::test::first_seed();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  Pipe stop;
  Pipe enough;
  std::vector<Child> members;
  for (uint32_t id = 1; id <= kMembers; ++id) {
    members.push_back(start(wire, id, stop, enough));
  }
  for (uint32_t i = 0; i < kills; ++i) {
    const uint32_t id = kSurvivors + 1 + random() % (kMembers - kSurvivors);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
    members[id - 1].signal(SIGKILL);
    EXPECT_EQ(members[id - 1].exit_code(), -1) << id << " ended before it was killed";
    members[id - 1] = start(wire, id, stop, enough);
  }
  for (uint32_t i = 0; i < kSurvivors; ++i) {
    pollfd one{enough.reader(), POLLIN, 0};
    ASSERT_EQ(poll(&one, 1, kLongMs), 1) << "survivors hear nothing of each other, seed " << seed;
    EXPECT_NE(enough.wait(), 0);
  }
  stop.tell();
  for (uint32_t id = 1; id <= kMembers; ++id) {
    EXPECT_EQ(members[id - 1].exit_code(), 0) << "destID " << id << ", seed " << seed;
  }
  unsetenv("RIO_RUNTIME_DIR");
}

}  // namespace
}  // namespace rio::test
