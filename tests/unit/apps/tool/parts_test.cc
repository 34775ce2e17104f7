#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "apps/tool/doctor/machine.hpp"
#include "apps/tool/system/card_state.hpp"
#include "apps/tool/system/files.hpp"
#include "apps/tool/words.hpp"
#include "tests/support/seed.hpp"

namespace rio::tool {
namespace {

TEST(ParseNumber, WholeNumbersOnly) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number("0x10EE"), 0x10EEu);
  for (const char* bad : {"", "0x", "-1", "+1", " 1", "1 ", "1.5", "1e3", "12a", "0xg", "0x-1",
                          "18446744073709551616", "0x10000000000000000"}) {
    EXPECT_FALSE(parse_number(bad)) << bad;
  }
}

TEST(ParseSize, UnitsAndOverflow) {
  EXPECT_EQ(parse_size("2M"), 2097152u);
  EXPECT_EQ(parse_size("1g"), 1073741824u);
  EXPECT_EQ(parse_size("2048K"), 2097152u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("17179869183G"), 17179869183u * (uint64_t{1} << 30));
  for (const char* bad : {"", "M", "0", "0M", "2X", "-2M", "2MB", "17179869184G"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(SizeText, ExactWhereItCanBe) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(2097152), "2 MiB");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(uint64_t{1} << 30), "1 GiB");
}

TEST(NumberAfter, DigitsToTheEnd) {
  EXPECT_EQ(number_after("cpu12", "cpu"), 12u);
  EXPECT_EQ(number_after("12", ""), 12u);
  for (const char* bad : {"cpu", "cpufreq", "cpu1x", "cpu-1", "xcpu1", "cpu99999999999"}) {
    EXPECT_FALSE(number_after(bad, "cpu")) << bad;
  }
}

TEST(FieldOf, NamesToTheColon) {
  const std::string text = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\nEmpty:\n";
  EXPECT_EQ(field_of(text, "Cpus_allowed_list"), "0-3,8");
  EXPECT_EQ(field_of(text, "Cpus_allowed"), "ff");
  EXPECT_EQ(field_of(text, "Empty"), "");
  EXPECT_EQ(field_of(text, "Cpus"), "");
  EXPECT_EQ(field_of("", "Name"), "");
}

TEST(ChosenWord, InBrackets) {
  EXPECT_EQ(chosen_word("none [integrity] confidentiality"), "integrity");
  for (const char* none : {"", "none", "[open", "close]", "]x["}) {
    EXPECT_EQ(chosen_word(none), "") << none;
  }
}

TEST(ParseResource, LinesOfBars) {
  const auto bars = parse_resource(
      "0x00000000e0000000 0x00000000e01fffff 0x0000000000040200\n"
      "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
      "0x0000000000000000 0x00000000000fffff 0x0000000020040200\n"
      "garbage\n"
      "0x5 0x4 0x200\n");
  EXPECT_TRUE(bars[0].there());
  EXPECT_FALSE(bars[0].unset());
  EXPECT_EQ(bars[0].len_bytes(), 0x200000u);
  EXPECT_FALSE(bars[1].there());
  EXPECT_TRUE(bars[2].unset());
  EXPECT_EQ(bars[2].len_bytes(), 0x100000u);
  EXPECT_FALSE(bars[3].there());
  EXPECT_EQ(bars[4].len_bytes(), 0u);  // it ends before it begins
  EXPECT_FALSE(bars[5].there());
}

TEST(ParseMemlock, SoftLimit) {
  const std::string head = "Limit                     Soft Limit           Hard Limit     Units\n";
  EXPECT_EQ(parse_memlock(head + "Max locked memory         8388608      16777216     bytes\n"),
            8388608u);
  EXPECT_EQ(parse_memlock(head + "Max locked memory         unlimited    unlimited    bytes\n"),
            UINT64_MAX);
  for (const char* bad : {"", "Max locked memory", "Max locked memory  x  y  bytes",
                          "Max open files  1  2  files", "Max locked memory -1 -1"}) {
    EXPECT_FALSE(parse_memlock(bad)) << bad;
  }
}

TEST(HugetlbfsMounts, EachOnce) {
  EXPECT_EQ(hugetlbfs_mounts("proc /proc proc rw 0 0\n"
                             "none /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n"
                             "none /mnt/huge hugetlbfs rw 0 0\n"
                             "none /mnt/huge hugetlbfs rw 0 0\n"
                             "hugetlbfs /x tmpfs rw 0 0\n"
                             "none relative hugetlbfs rw 0 0\n"
                             "none /a/../b hugetlbfs rw 0 0\n"
                             "short\n"),
            (std::vector<std::string>{"/dev/hugepages", "/mnt/huge"}));
}

TEST(ShellWord, QuotesWhatIsNotPlain) {
  EXPECT_EQ(shell_word("/dev/hugepages/rtemap_0"), "/dev/hugepages/rtemap_0");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("a;rm -r $HOME"), "'a;rm -r $HOME'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(NeededEal, NameInTheBytes) {
  using namespace std::string_literals;
  EXPECT_EQ(needed_eal("\177ELF\0librte_eal.so.23\0libc.so.6\0"s), 23u);
  EXPECT_EQ(needed_eal("librte_eal.so.24"), 24u);
  EXPECT_FALSE(needed_eal("librte_eal.so\0"s));
  EXPECT_FALSE(needed_eal("librte_eal.so.x\0"s));
  EXPECT_FALSE(needed_eal(""));
}

TEST(TypingDistance, LettersChangedAddedLeftOutSwapped) {
  EXPECT_EQ(typing_distance("list", "list"), 0u);
  EXPECT_EQ(typing_distance("lst", "list"), 1u);
  EXPECT_EQ(typing_distance("lsit", "list"), 1u);
  EXPECT_EQ(typing_distance("kist", "list"), 1u);
  EXPECT_EQ(typing_distance("", "list"), 4u);
  EXPECT_EQ(typing_distance("doctor", ""), 6u);
}

TEST(NearestWord, OnlyIfItIsNear) {
  const std::vector<std::string> words = {"list", "doctor", "bind", "unbind"};
  EXPECT_EQ(nearest_word("docter", words), "doctor");
  EXPECT_EQ(nearest_word("unbnd", words), "unbind");
  EXPECT_EQ(nearest_word("xyz", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word("list", {}), "");
}

TEST(FixedValues, OfTypesThatNameThem) {
  EXPECT_EQ(fixed_values("COUNT|show"), (std::vector<std::string>{"show"}));
  EXPECT_EQ(fixed_values("TEXT:{bash,zsh}"), (std::vector<std::string>{"bash", "zsh"}));
  EXPECT_EQ(fixed_values("vfio-pci|igb_uio|DRIVER"),
            (std::vector<std::string>{"vfio-pci", "igb_uio"}));
  EXPECT_TRUE(fixed_values("TEXT:DIR").empty());
  EXPECT_TRUE(fixed_values("INT in [0 - 1023]").empty());
  EXPECT_TRUE(fixed_values("").empty());
}

TEST(Kinds, IdsAreDifferentAndEachSaysWhy) {
  std::vector<std::string> ids;
  for (const Kind& kind : all_kinds()) {
    EXPECT_EQ(std::count(ids.begin(), ids.end(), kind.id), 0) << kind.id;
    EXPECT_EQ(find_kind(kind.id), &kind);
    EXPECT_GT(std::string(kind.why).size(), 40u) << kind.id;
    ids.emplace_back(kind.id);
  }
  EXPECT_EQ(find_kind("no.such"), nullptr);
  EXPECT_EQ(find_kind(""), nullptr);
}

TEST(Parsers, TakeAnyBytes) {
  const unsigned seed = rio::test::first_seed();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  static constexpr char kLetters[] = "0123456789abcdefx :\n\t[]{}|,-.GMK/ Max locked memory";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random() % 80; n > 0; --n) {
      text += random() % 8 == 0 ? static_cast<char>(random())
                                : kLetters[random() % (sizeof(kLetters) - 1)];
    }
    (void)parse_number(text);
    (void)parse_size(text);
    (void)parse_memlock("Max locked memory " + text);
    (void)parse_resource(text);
    (void)field_of(text, "a");
    (void)chosen_word(text);
    (void)hugetlbfs_mounts(text);
    (void)needed_eal("librte_eal.so." + text);
    for (const std::string& value : fixed_values(text)) {
      EXPECT_FALSE(value.empty());
    }
    // A quoted text is one word: no quote is left open.
    const std::string word = shell_word(text);
    EXPECT_TRUE(word == text || (word.front() == '\'' && word.back() == '\''));
  }
}

}  // namespace
}  // namespace rio::tool
