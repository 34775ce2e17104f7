// Two ends over a path that loses, doubles, reorders, delays and spoils datagrams, by seed and in
// virtual time. All units must arrive, once, in order, in both directions.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "fpga/wire/udp/connection.hpp"
#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {
namespace {

constexpr uint32_t kUnits = 2000;
constexpr uint64_t kStepNs = 10'000;

struct Rates {
  uint32_t lost, doubled, late, cut;  // of 1000
};

/// Datagrams under way, by their time of arrival.
class FaultyPath {
 public:
  FaultyPath(uint32_t seed, Rates rates) : random_(seed), rates_(rates) {}

  void send(std::vector<uint8_t> bytes, uint64_t now_ns) {
    if (draw(rates_.lost)) {
      return;
    }
    if (draw(rates_.cut)) {
      bytes.resize(random_() % bytes.size());
    }
    for (int copies = draw(rates_.doubled) ? 2 : 1; copies > 0; --copies) {
      const uint64_t late = draw(rates_.late) ? random_() % 5'000'000 : 0;
      flying_.emplace(now_ns + 50'000 + late, bytes);
    }
  }
  bool receive(uint64_t now_ns, std::vector<uint8_t>* out) {
    if (flying_.empty() || flying_.begin()->first > now_ns) {
      return false;
    }
    *out = std::move(flying_.begin()->second);
    flying_.erase(flying_.begin());
    return true;
  }

 private:
  bool draw(uint32_t rate) { return random_() % 1000 < rate; }

  std::mt19937 random_;
  Rates rates_;
  std::multimap<uint64_t, std::vector<uint8_t>> flying_;
};

/// Takes units of both lanes, and sometimes has no room.
class Shelf final : public Intake {
 public:
  explicit Shelf(uint32_t seed) : random_(seed) {}

  bool take(UnitKind lane, std::span<const uint8_t> unit) override {
    if (random_() % 8 == 0) {
      return false;
    }
    uint32_t number = 0;
    std::memcpy(&number, unit.data(), sizeof(number));
    uint32_t& given = given_[static_cast<size_t>(lane)];
    EXPECT_EQ(number, given);
    EXPECT_EQ(unit.size(), sizeof(number) + number % 97);
    ++given;
    return true;
  }
  [[nodiscard]] uint32_t given(UnitKind lane) const { return given_[static_cast<size_t>(lane)]; }
  [[nodiscard]] bool full() const { return given_[0] == kUnits && given_[1] == kUnits; }

 private:
  std::mt19937 random_;
  std::array<uint32_t, kLanes> given_{};
};

class End {
 public:
  End(const Agreed& agreed, uint32_t seed) : shelf_(seed), session_(agreed, &shelf_, 0) {}

  void step(FaultyPath& out, FaultyPath& in, uint64_t now_ns) {
    std::vector<uint8_t> bytes;
    while (in.receive(now_ns, &bytes)) {
      take(bytes, now_ns);
    }
    static_cast<void>(session_.offer_again());
    for (const UnitKind lane : {UnitKind::kRequests, UnitKind::kResponses}) {
      while (push(lane)) {
      }
    }
    session_.look(now_ns);
    std::vector<uint8_t> room(session_.datagram_bytes());
    size_t used = session_.send(now_ns, room);
    for (; used > 0; used = session_.send(now_ns, room)) {
      out.send({room.begin(), room.begin() + static_cast<ptrdiff_t>(used)}, now_ns);
    }
    if (session_.owes_answer(true)) {
      used = session_.answer(room, false);
      out.send({room.begin(), room.begin() + static_cast<ptrdiff_t>(used)}, now_ns);
    }
  }
  [[nodiscard]] bool done() const { return shelf_.full() && session_.all_there(); }
  [[nodiscard]] uint32_t given() const { return shelf_.given(UnitKind::kRequests); }
  [[nodiscard]] uint32_t refused() const { return refused_; }

 private:
  bool push(UnitKind lane) {
    uint32_t& number = pushed_[static_cast<size_t>(lane)];
    const size_t bytes = sizeof(number) + number % 97;
    const std::span<uint8_t> to =
        number == kUnits ? std::span<uint8_t>{} : session_.begin_unit(lane);
    if (to.empty()) {
      return false;
    }
    std::memcpy(to.data(), &number, sizeof(number));
    session_.end_unit(lane, bytes);
    ++number;
    return true;
  }
  void take(std::vector<uint8_t>& bytes, uint64_t now_ns) {
    const int rc = session_.take(bytes, now_ns);
    refused_ += rc == -EALREADY || rc == -EACCES ? 1 : 0;
    EXPECT_TRUE(rc == 0 || rc == -EALREADY || rc == -EACCES || bytes.size() < kCutBelow) << rc;
  }

  static constexpr size_t kCutBelow = 1500;
  Shelf shelf_;
  Connection session_;
  std::array<uint32_t, kLanes> pushed_{};
  uint32_t refused_ = 0;
};

/// Runs a test. @return number of refused datagrams, of both ends.
uint32_t run(uint32_t seed, Rates rates, bool sealed = false) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  FaultyPath there(seed, rates);
  FaultyPath back(seed + 1'000'000, rates);
  Agreed agreed;
  agreed.datagram_bytes = kDatagramMin;
  agreed.sealed = sealed;
  agreed.out_key = {1, 2, 3};
  agreed.in_key = {4, 5, 6};
  End a(agreed, seed + 2'000'000);
  std::swap(agreed.out_key, agreed.in_key);
  End b(agreed, seed + 3'000'000);
  uint64_t now_ns = kStepNs;
  // 600 s of virtual time, to tell a path that stands still from a slow one.
  for (; now_ns < 600'000'000'000 && !(a.done() && b.done()); now_ns += kStepNs) {
    a.step(there, back, now_ns);
    b.step(back, there, now_ns);
  }
  EXPECT_TRUE(a.done()) << a.given();
  EXPECT_TRUE(b.done()) << b.given();
  return a.refused() + b.refused();
}

TEST(UdpFaultyPath, EverythingArrivesOnAGoodPath) {
  EXPECT_EQ(run(1, {0, 0, 0, 0}), 0u);
  EXPECT_EQ(run(1, {0, 0, 0, 0}, true), 0u);
}

TEST(UdpFaultyPath, EverythingArrivesDespiteEachFault) {
  run(2, {100, 0, 0, 0});
  run(3, {0, 200, 0, 0});
  run(4, {0, 0, 300, 0});
  run(5, {0, 0, 0, 100});
}

TEST(UdpFaultyPath, EverythingArrivesDespiteAllFaults) {
  for (uint32_t seed = 10; seed < 15; ++seed) {
    run(seed, {50, 50, 100, 20});
  }
}

TEST(UdpFaultyPath, WithAKeyRepeatedAndSpoiltDatagramsAreRefused) {
  EXPECT_GT(run(20, {0, 200, 0, 0}, true), 100u);
  EXPECT_GT(run(21, {0, 0, 0, 200}, true), 100u);
}

}  // namespace
}  // namespace rio::wire::udp
