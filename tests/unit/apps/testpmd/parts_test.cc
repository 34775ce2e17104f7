// The parts of rio-testpmd that need neither a card nor EAL.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <sstream>
#include <vector>

#include "apps/common/columns.hpp"
#include "apps/testpmd/histogram.hpp"
#include "apps/testpmd/options.hpp"
#include "apps/testpmd/pattern.hpp"
#include "apps/testpmd/verifier.hpp"

namespace rio::testpmd {
namespace {

TEST(Histogram, KeepsSmallValuesExactly) {
  Histogram h;
  for (uint64_t v = 0; v < 100; ++v) {
    h.add(v);
  }
  EXPECT_EQ(h.total(), 100u);
  EXPECT_EQ(h.percentile(50), 49u);
  EXPECT_EQ(h.percentile(99), 98u);
  EXPECT_EQ(h.percentile(100), 99u);
  EXPECT_EQ(h.min(), 0u);
  EXPECT_EQ(h.max(), 99u);
  EXPECT_DOUBLE_EQ(h.mean(), 49.5);
}

TEST(Histogram, EmptyIsZero) {
  const Histogram h;
  EXPECT_EQ(h.percentile(50), 0u);
  EXPECT_EQ(h.min(), 0u);
  EXPECT_EQ(h.max(), 0u);
}

TEST(Histogram, EveryValueLiesInItsBucket) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t value = random() >> (random() & 63);
    const size_t bucket = Histogram::bucket_of(value);
    ASSERT_LT(bucket, Histogram::kBuckets);
    ASSERT_LE(value, Histogram::last_value_of(bucket));
    ASSERT_TRUE(bucket == 0 || value > Histogram::last_value_of(bucket - 1)) << value;
    ASSERT_LE(Histogram::last_value_of(bucket) - value, value / 64);
  }
}

TEST(Histogram, LongTailIsNotThrownAway) {
  Histogram h;
  for (int i = 0; i < 999; ++i) {
    h.add(1000);
  }
  h.add(UINT64_MAX);
  EXPECT_LE(h.percentile(99.9), 1000u + 1000u / 64);
  EXPECT_EQ(h.percentile(99.95), UINT64_MAX);
}

TEST(Histogram, Merges) {
  Histogram a;
  Histogram b;
  a.add(1);
  b.add(1000000);
  a.merge(b);
  EXPECT_EQ(a.total(), 2u);
  EXPECT_EQ(a.min(), 1u);
  EXPECT_EQ(a.max(), 1000000u);
}

TEST(Sizes, OneAndSweeps) {
  std::vector<uint32_t> sizes;
  std::string error;
  ASSERT_EQ(parse_sizes("64", 4096, &sizes, &error), 0);
  EXPECT_EQ(sizes, std::vector<uint32_t>({64}));
  ASSERT_EQ(parse_sizes("8,64,2,MUL", 4096, &sizes, &error), 0);
  EXPECT_EQ(sizes, std::vector<uint32_t>({8, 16, 32, 64}));
  ASSERT_EQ(parse_sizes("10,35,10,ADD", 4096, &sizes, &error), 0);
  EXPECT_EQ(sizes, std::vector<uint32_t>({10, 20, 30}));
  ASSERT_EQ(parse_sizes("4K", 4096, &sizes, &error), 0);
  EXPECT_EQ(sizes, std::vector<uint32_t>({4096}));
}

TEST(Sizes, BadOnesAreNamedAndChangeNothing) {
  for (const char* bad : {"", "0", "4097", "-1", "x", "64x", "8,64", "8,64,2", "64,8,2,MUL",
                          "8,64,1,MUL", "8,64,0,ADD", "8,64,2,SUB", "0,64,2,MUL", "8,9999,2,MUL",
                          "8,64,2,MUL,1", "18446744073709551616", "0x"}) {
    std::vector<uint32_t> sizes = {7};
    std::string error;
    EXPECT_EQ(parse_sizes(bad, 4096, &sizes, &error), -EINVAL) << bad;
    EXPECT_FALSE(error.empty()) << bad;
    EXPECT_EQ(sizes, std::vector<uint32_t>({7})) << bad;
  }
}

TEST(Pattern, EveryLengthIsRecognized) {
  std::vector<uint8_t> bytes(4096 + 256);
  for (uint32_t length = 1; length <= 4096; ++length) {
    const Tag sent{.sequence = 1000 + length, .stamp = 77, .flow = 5};
    const uint32_t landed = (length + 7) / 8 * 8;
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    fill_message(bytes.data(), length, 3, sent);
    Tag got;
    uint32_t where = 0;
    ASSERT_EQ(check_message(bytes.data(), length, landed, 3, sent.sequence + 2, &got, &where),
              Verdict::kGood)
        << length;
    ASSERT_EQ(got.sequence, sent.sequence);
    ASSERT_EQ(got.flow, length < kTagBytes ? 0 : 5);
    ASSERT_EQ(got.stamp, length < kStampBytes ? 0u : 77u);
  }
}

TEST(Pattern, EveryWrongByteIsFound) {
  for (const uint32_t length : {2u, 7u, 9u, 15u, 16u, 17u, 23u, 24u, 25u, 64u, 257u}) {
    std::vector<uint8_t> bytes(length + 8);
    fill_message(bytes.data(), length, 9, {.sequence = 4, .stamp = 8, .flow = 1});
    const uint32_t landed = (length + 7) / 8 * 8;
    for (uint32_t at = 0; at < landed; ++at) {
      bytes[at] ^= 0x40;
      Tag got;
      uint32_t where = 0;
      EXPECT_NE(check_message(bytes.data(), length, landed, 9, 4, &got, &where), Verdict::kGood)
          << length << " at " << at;
      bytes[at] ^= 0x40;
    }
  }
}

TEST(Pattern, AnotherSeedIsWrong) {
  std::array<uint8_t, 64> bytes{};
  fill_message(bytes.data(), 64, 1, {.sequence = 4});
  Tag got;
  uint32_t where = 0;
  EXPECT_EQ(check_message(bytes.data(), 64, 64, 2, 4, &got, &where), Verdict::kBytesBroken);
  EXPECT_EQ(where, 2 * kTagBytes);
}

TEST(Pattern, OneByteFindsItsSequence) {
  for (const uint64_t expected : {uint64_t{0}, uint64_t{200}, uint64_t{1} << 33}) {
    for (int ahead = expected == 0 ? 0 : -100; ahead <= 100; ++ahead) {
      uint8_t byte = 0;
      const uint64_t sequence = expected + static_cast<uint64_t>(int64_t{ahead});
      fill_message(&byte, 1, 1, {.sequence = sequence});
      Tag got;
      ASSERT_TRUE(read_tag(&byte, 1, expected, &got));
      ASSERT_EQ(got.sequence, sequence);
    }
  }
}

/// Numbers below next() that did not come.
uint64_t missing(const SequenceTracker& seen) {
  return seen.next() - seen.unique();
}

TEST(Sequence, TellsLateDuplicateAndMissing) {
  SequenceTracker seen;
  EXPECT_EQ(seen.accept(0), SequenceTracker::Seen::kInOrder);
  EXPECT_EQ(seen.accept(2), SequenceTracker::Seen::kInOrder);
  EXPECT_EQ(missing(seen), 1u);
  EXPECT_EQ(seen.accept(1), SequenceTracker::Seen::kLate);
  EXPECT_EQ(missing(seen), 0u);
  EXPECT_EQ(seen.accept(1), SequenceTracker::Seen::kDuplicate);
  EXPECT_EQ(seen.accept(2), SequenceTracker::Seen::kDuplicate);
  EXPECT_EQ(seen.unique(), 3u);
}

TEST(Sequence, GoesOnBehindAGapOfMoreThanTheWindow) {
  for (const uint64_t gap : {SequenceTracker::kWindow - 1, SequenceTracker::kWindow,
                             SequenceTracker::kWindow + 1, 5 * SequenceTracker::kWindow + 7}) {
    SequenceTracker seen;
    for (uint64_t n = 0; n < SequenceTracker::kWindow; ++n) {
      ASSERT_EQ(seen.accept(n), SequenceTracker::Seen::kInOrder);
    }
    const uint64_t far = SequenceTracker::kWindow + gap;
    EXPECT_EQ(seen.accept(far), SequenceTracker::Seen::kInOrder) << gap;
    EXPECT_EQ(missing(seen), gap);
    EXPECT_EQ(seen.accept(far), SequenceTracker::Seen::kDuplicate) << gap;
    EXPECT_EQ(seen.accept(far - 1), SequenceTracker::Seen::kLate) << gap;
    EXPECT_EQ(seen.accept(far - SequenceTracker::kWindow + 1), SequenceTracker::Seen::kLate) << gap;
    EXPECT_EQ(missing(seen), gap - 2);
    EXPECT_EQ(seen.accept(0), SequenceTracker::Seen::kDuplicate) << gap;
  }
}

TEST(Sequence, WindowWraps) {
  SequenceTracker seen;
  for (uint64_t n = 0; n < 5 * SequenceTracker::kWindow; n += 2) {
    ASSERT_EQ(seen.accept(n + 1), SequenceTracker::Seen::kInOrder);
    ASSERT_EQ(seen.accept(n), SequenceTracker::Seen::kLate);
    ASSERT_EQ(seen.accept(n), SequenceTracker::Seen::kDuplicate);
  }
  EXPECT_EQ(missing(seen), 0u);
}

int parse(std::vector<std::string_view> args, Options* out, std::string* error) {
  return parse_options(args, out, error);
}

TEST(Options, TakesBothForms) {
  Options options;
  std::string error;
  ASSERT_EQ(parse({"--mode", "txonly", "--size=8,64,2,MUL", "--burst", "16", "--verify", "-i",
                   "--faults", "7:0.01", "--forward-lcores", "1,3-5", "--peers", "0x10,17"},
                  &options, &error),
            0)
      << error;
  EXPECT_EQ(options.mode, "txonly");
  EXPECT_EQ(options.sizes.size(), 4u);
  EXPECT_EQ(options.burst, 16u);
  EXPECT_TRUE(options.verify);
  EXPECT_TRUE(options.interactive);
  EXPECT_EQ(options.fault_seed, 7u);
  EXPECT_DOUBLE_EQ(options.fault_rate, 0.01);
  EXPECT_EQ(options.forward_lcores, std::vector<unsigned>({1, 3, 4, 5}));
  EXPECT_EQ(options.peers, std::vector<uint32_t>({16, 17}));
}

TEST(Options, BadOnesAreNamed) {
  const std::vector<std::vector<std::string_view>> bad = {
      {"--sizes", "64"},
      {"mode"},
      {"--size"},
      {"--size", "0"},
      {"--size", "9999999"},
      {"--burst", "0"},
      {"--burst", "129"},
      {"--seconds", "0"},
      {"--seconds", "-1"},
      {"--seconds", "nan"},
      {"--count", "0"},
      {"--offset", "4096"},
      {"--faults", "7"},
      {"--faults", "7:2"},
      {"--faults", ":0.1"},
      {"--topology", "ring"},
      {"--forward-lcores", "1,1"},
      {"--forward-lcores", "3-1"},
      {"--nb-cores", "0"},
      {"--mailboxes", "65"},
      {"--op", "read"},
      {"--verify=maybe"},
      {"--peers", "1,"},
      {"--queues", "9"},
      {"--stats-period", "x"},
      {"--json", ""},
      {"--flows", "0"},
  };
  for (const auto& args : bad) {
    Options options;
    std::string error;
    EXPECT_EQ(parse_options(args, &options, &error), -EINVAL) << args.front();
    EXPECT_NE(error.find(std::string(args.front().substr(0, args.front().find('=')))),
              std::string::npos)
        << error;
  }
}

TEST(Options, ContradictionsAreNamed) {
  Options options;
  std::string error;
  options.sizes = {8, 16};
  EXPECT_EQ(check_options(options, &error), -EINVAL);
  options.seconds = 1;
  EXPECT_EQ(check_options(options, &error), 0);
  options.forward_lcores = {1, 2};
  options.nb_cores = 1;
  EXPECT_EQ(check_options(options, &error), -EINVAL);
}

TEST(Options, HelpNamesEachOptionAndEachExitCode) {
  const std::string help = help_text();
  for (const OptionDef& option : option_table()) {
    EXPECT_NE(help.find("--" + std::string(option.name)), std::string::npos) << option.name;
  }
  EXPECT_NE(help.find("Exit code"), std::string::npos);
}

TEST(Columns, CountsCharacters) {
  EXPECT_EQ(apps::columns_of(""), 0u);
  EXPECT_EQ(apps::columns_of("ID,ID"), 5u);
  EXPECT_EQ(apps::columns_of("\xC3\xA4 \xE2\x80\xA6"), 3u);
  EXPECT_EQ(apps::padded("\xE2\x80\xA6", 3), "\xE2\x80\xA6  ");
  EXPECT_EQ(apps::padded("long", 3), "long");
}

TEST(Options, HelpIsAligned) {
  std::istringstream help(help_text());
  int options = 0;
  for (std::string line; std::getline(help, line);) {
    if (const size_t dashes = line.find("--"); line.starts_with("  -") && dashes <= 5) {
      const std::string head = line.substr(0, line.find("  ", dashes));  // without the blanks
      const size_t text = line.find_first_not_of(' ', head.size());
      EXPECT_EQ(apps::columns_of(line.substr(0, text)), 32u) << line;
      ++options;
    }
  }
  EXPECT_EQ(options, static_cast<int>(option_table().size()));
}

}  // namespace
}  // namespace rio::testpmd
