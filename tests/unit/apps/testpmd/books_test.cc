// The totals of a run's books, and registers by name.
#include <gtest/gtest.h>

#include <array>

#include "apps/testpmd/verifier.hpp"
#include "pmd/dev/reg_names.hpp"

namespace rio::testpmd {

using pmd::begins_with;
using pmd::fields_text;
using pmd::find_register;
using pmd::RegWord;
namespace {

constexpr uint32_t kLength = 64;
using Message = std::array<uint8_t, kLength>;

class Books : public testing::Test {
 protected:
  void SetUp() override { books_.reset(5, 2, kLength, true); }
  Message written(uint16_t flow) {
    Message message{};
    books_.write(message.data(), flow, 77);
    return message;
  }
  bool read(const Message& message) {
    uint64_t stamp = 0;
    return books_.read(message.data(), kLength, 0, &stamp) && stamp == 77;
  }
  Verifier books_;
};

TEST_F(Books, AllMessagesArrive) {
  const Message first = written(0);
  const Message second = written(1);
  EXPECT_TRUE(read(second));
  EXPECT_TRUE(read(first));
  const VerifyTotals totals = books_.totals();
  EXPECT_EQ(totals.messages, 2u);
  EXPECT_EQ(totals.bytes, 2u * kLength);
  EXPECT_EQ(totals.errors(), 0u);
}

TEST_F(Books, LostTwiceAndCorruptedAreCounted) {
  const Message first = written(0);
  (void)written(0);
  Message third = written(0);
  EXPECT_TRUE(read(first));
  EXPECT_TRUE(read(first));
  third[40] ^= 1;
  EXPECT_FALSE(read(third));
  const VerifyTotals totals = books_.totals();
  EXPECT_EQ(totals.duplicated, 1u);
  EXPECT_EQ(totals.corrupted, 1u);
  EXPECT_EQ(totals.lost, 2u);
  EXPECT_NE(totals.first_error.find("byte 40"), std::string::npos) << totals.first_error;
}

TEST_F(Books, AFailureThatTheCardReportsIsNotCountedAsLost) {
  (void)written(0);
  (void)written(0);
  books_.failed(0, pmd::Status::kRetryExpired);
  books_.failed(0, pmd::Status::kResponseTimeout);
  const VerifyTotals totals = books_.totals();
  EXPECT_EQ(totals.refused, 1u);
  EXPECT_EQ(totals.in_doubt, 1u);
  EXPECT_EQ(totals.errors(), 0u);
}

TEST_F(Books, AMessageInDoubtMayArriveARefusedOneMayNot) {
  const Message doubtful = written(0);
  const Message refused = written(1);
  books_.failed(0, pmd::Status::kResponseTimeout);
  books_.failed(1, pmd::Status::kErrorResponse);
  EXPECT_TRUE(read(doubtful));
  EXPECT_EQ(books_.totals().errors(), 0u);
  EXPECT_TRUE(read(refused));
  EXPECT_EQ(books_.totals().unrefused, 1u);
}

TEST_F(Books, AnotherLengthIsCorrupted) {
  const Message message = written(0);
  uint64_t stamp = 0;
  EXPECT_FALSE(books_.read(message.data(), kLength - 8, 0, &stamp));
  EXPECT_EQ(books_.totals().corrupted, 1u);
}

TEST_F(Books, AnUnknownFlowIsCorrupted) {
  Message message{};
  fill_message(message.data(), kLength, 5, {.sequence = 0, .stamp = 77, .flow = 9});
  EXPECT_FALSE(read(message));
  EXPECT_EQ(books_.totals().corrupted, 1u);
}

uint32_t offset_of(std::string_view name) {
  RegWord word;
  std::string error;
  EXPECT_EQ(find_register(name, &word, &error), 0) << error;
  return word.reg == nullptr ? 0 : word.offset();
}

TEST(Registers, ByName) {
  EXPECT_EQ(offset_of("id.magic"), 0x0u);
  EXPECT_EQ(offset_of("port.link"), 0x4008u);
  EXPECT_EQ(offset_of("qp[0].tail[0]"), 0x12000u);
  EXPECT_EQ(offset_of("qp[30].ring_status[15]"), 0x1F0040u + 15 * 8);
}

TEST(Registers, EachIsFoundByItsNameAndOffset) {
  for (const regs::names::RegName& reg : regs::names::kRegisters) {
    const RegWord last{&reg, reg.instances - 1, reg.count - 1};
    EXPECT_EQ(offset_of(last.name()), last.offset()) << last.name();
    EXPECT_EQ(offset_of(std::to_string(last.offset())), last.offset()) << last.name();
  }
}

TEST(Registers, CaseDoesNotMatter) {
  EXPECT_EQ(offset_of("ID.MAGIC"), 0x0u);
  EXPECT_EQ(offset_of("Port.LINK"), 0x4008u);
  EXPECT_EQ(offset_of("QP[30].Ring_Status[15]"), 0x1F0040u + 15 * 8);
  RegWord word;
  std::string error;
  EXPECT_EQ(find_register("ID.MAGI", &word, &error), -EINVAL);
  EXPECT_NE(error.find("'ID.MAGI'"), std::string::npos) << "as it was written: " << error;
  EXPECT_NE(error.find("id.magic"), std::string::npos) << error;
}

TEST(Registers, Beginnings) {
  EXPECT_TRUE(begins_with("qp[0].tail[1]", "QP[0].T"));
  EXPECT_TRUE(begins_with("id.magic", ""));
  EXPECT_TRUE(begins_with("id.magic", "id.magic"));
  EXPECT_FALSE(begins_with("id.magic", "id.magic2"));
  EXPECT_FALSE(begins_with("id.magic", "magic"));
}

TEST(Registers, MistakesAreNamed) {
  for (const char* bad :
       {"", ".", "id", "id.", "id.magi", "qp.tail", "qp[0].tail", "qp[31].tail[0]",
        "qp[0].tail[16]", "qp[x].tail[0]", "qp[0.tail[0]", "id[0].magic", "0x3"}) {
    RegWord word;
    std::string error;
    EXPECT_EQ(find_register(bad, &word, &error), -EINVAL) << bad;
    EXPECT_FALSE(error.empty()) << bad;
  }
}

TEST(Registers, Fields) {
  constexpr std::array<regs::names::FieldName, 2> kFields = {{{"up", 0, 1}, {"mbaud", 16, 16}}};
  EXPECT_EQ(fields_text(kFields, 0x0C350001), "up=1 mbaud=3125");
}

}  // namespace
}  // namespace rio::testpmd
