// Repeats one kind of matching, so that callgrind can count it:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_tag_post
//     tag_count CASE POSTED OPERATIONS
// rio_bench_tag_post and rio_bench_tag_arrive hold one call of the engine each. Prints one JSON
// object. Cases: see kCases.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/tag/matcher.hpp"

using rio::tag::HashSeed;
using rio::tag::Matcher;
using rio::tag::Message;
using rio::tag::Receive;

/// What callgrind looks at. Not inlined, and with names that are easy to give.
extern "C" {
[[gnu::noinline]] Message* rio_bench_tag_post(Matcher* matcher, Receive* receive) {
  return matcher->post(*receive);
}
[[gnu::noinline]] Receive* rio_bench_tag_arrive(Matcher* matcher, uint32_t source, uint64_t bits) {
  return matcher->arrive(source, bits);
}
[[gnu::noinline]] void rio_bench_tag_keep(Matcher* matcher, Message* message) {
  matcher->keep(*message);
}
[[gnu::noinline]] int rio_bench_tag_cancel(Matcher* matcher, Receive* receive) {
  return matcher->cancel(*receive);
}
}

namespace {

constexpr HashSeed kSeed{.for_bits = 0x9E3779B97F4A7C15u, .for_source = 0xD1B54A32D192ED03u};
constexpr uint64_t kIgnoreTag = 0xFFFFFFFFu;

void expect(bool good, const char* what) {
  if (!good) {
    std::fprintf(stderr, "error: %s did not do what it should\n", what);
    std::exit(1);
  }
}

struct Case {
  const char* name;
  bool one_key;         // all receives have the same key
  bool any_source;      // receives are of any source
  uint64_t ignore;      // of the receives
  bool unexpected;      // messages come first
  bool cancel;          // receives are cancelled instead of matched
};

constexpr Case kCases[] = {
    {"exact", false, false, 0, false, false},
    {"same", true, false, 0, false, false},
    {"any", false, true, 0, false, false},
    {"masked", true, false, kIgnoreTag, false, false},
    {"cancel", false, false, 0, false, true},
    {"unexpected", false, false, 0, true, false},
    {"unexpected_any", false, true, 0, true, false},
};

/// `count` entries wait all the time; the oldest goes, a new one comes.
class Traffic {
 public:
  Traffic(const Case& kind, uint64_t count) : kind_(kind), receives_(count), messages_(count) {
    expect(matcher_.create(kSeed, {.receives = 2 * count, .messages = 2 * count}) == 0, "create");
    for (uint64_t i = 0; i < count; ++i) {
      put(i, i);
    }
  }

  void step() {
    const uint64_t slot = next_ % receives_.size();
    get(slot, next_ - receives_.size());
    put(slot, next_);
    ++next_;
  }

 private:
  [[nodiscard]] uint64_t bits(uint64_t number) const {
    return kind_.one_key ? 7 : number % (4 * receives_.size());
  }
  [[nodiscard]] static uint32_t source(uint64_t number) {
    return static_cast<uint32_t>(number % 4);
  }

  void fill(Receive& receive, uint64_t number) const {
    receive.bits = bits(number);
    receive.ignore = kind_.ignore;
    receive.source = kind_.any_source ? rio::tag::kAnySource : kind_.one_key ? 0 : source(number);
  }

  void put(uint64_t slot, uint64_t number) {
    if (kind_.unexpected) {
      Message& message = messages_[slot];
      message.bits = bits(number);
      message.source = source(number);
      expect(rio_bench_tag_arrive(&matcher_, message.source, message.bits) == nullptr, "arrive");
      rio_bench_tag_keep(&matcher_, &message);
      return;
    }
    fill(receives_[slot], number);
    expect(rio_bench_tag_post(&matcher_, &receives_[slot]) == nullptr, "post");
  }

  void get(uint64_t slot, uint64_t number) {
    if (kind_.unexpected) {
      fill(receives_[slot], number);
      expect(rio_bench_tag_post(&matcher_, &receives_[slot]) == &messages_[slot], "post");
    } else if (kind_.cancel) {
      expect(rio_bench_tag_cancel(&matcher_, &receives_[slot]) == 0, "cancel");
    } else {
      const uint32_t from = kind_.one_key ? 0 : source(number);
      expect(rio_bench_tag_arrive(&matcher_, from, bits(number)) == &receives_[slot], "arrive");
    }
  }

  Case kind_;
  Matcher matcher_;
  std::vector<Receive> receives_;
  std::vector<Message> messages_;
  uint64_t next_ = receives_.size();
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s CASE POSTED OPERATIONS\n", argv[0]);
    return 1;
  }
  const Case* kind = nullptr;
  for (const Case& each : kCases) {
    kind = std::string_view(argv[1]) == each.name ? &each : kind;
  }
  const uint64_t posted = std::strtoull(argv[2], nullptr, 0);
  const uint64_t operations = std::strtoull(argv[3], nullptr, 0);
  if (kind == nullptr || posted == 0) {
    std::fprintf(stderr, "error: no case '%s' with %s posted\n", argv[1], argv[2]);
    return 1;
  }
  Traffic traffic(*kind, posted);
  for (uint64_t i = 0; i < operations; ++i) {
    traffic.step();
  }
  std::printf("{\"case\": \"%s\", \"posted\": %llu, \"operations\": %llu}\n", argv[1],
              static_cast<unsigned long long>(posted), static_cast<unsigned long long>(operations));
  return 0;
}
