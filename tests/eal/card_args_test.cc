// Every device argument: accepted values, and the errors for bad ones. No EAL process.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/log.hpp"
#include "fpga/name/keys.hpp"
#include "pmd/card/card_args.hpp"
#include "pmd/card/shared_card.hpp"

namespace rio::pmd {
namespace {

std::string logged;

template <typename Wire>
Wire wire_in(const CardArgs& args) {
  EXPECT_TRUE(std::holds_alternative<Wire>(args.emu.wire)) << args.emu.wire.index();
  return std::holds_alternative<Wire>(args.emu.wire) ? std::get<Wire>(args.emu.wire) : Wire{};
}

void keep(base::LogLevel /*level*/, const char* line) noexcept {
  logged.append(line).append("\n");
}

int parse(const char* text, CardArgs* args, name::Place place = name::Place::kDevice) {
  logged.clear();
  base::set_log_sink(keep);
  const int rc = parse_devargs("raw_rio7", text, place, args);
  base::set_log_sink(nullptr);
  return rc;
}

TEST(CardDevargs, TakesNothing) {
  CardArgs args;
  EXPECT_EQ(parse("", &args), 0);
  EXPECT_EQ(parse(nullptr, &args), 0);
  EXPECT_EQ(wire_in<name::Cable>(args).name, "loop");
  EXPECT_EQ(args.wire, "loop");
  EXPECT_EQ(args.emu.model.queue_pairs, 2u);
}

TEST(CardDevargs, TakesAll) {
  CardArgs args;
  ASSERT_EQ(parse("wire=left-right,qps=31,stepping=thread,exact=1,quirks=0,faults=0x10:0.25,"
                  "pcie=18446744073709551615,destid=0x200,tx_ring=1024,rx_ring=64,"
                  "dedicated_ring=16,doorbell_ring=8,dma_ring=32,event_ring=128,"
                  "response_timeout_us=10,receive_timeout_us=20,retry_limit=0,retry_delay_us=7,"
                  "push_slots=4,push=1,vf_qps=3",
                  &args),
            0)
      << logged;
  EXPECT_EQ(wire_in<name::Cable>(args).name, "left-right");
  EXPECT_EQ(args.wire, "left-right");
  EXPECT_EQ(args.emu.model.queue_pairs, 31u);
  EXPECT_EQ(args.emu.model.stepping, Stepping::kThread);
  EXPECT_TRUE(args.emu.model.exact);
  EXPECT_FALSE(args.emu.model.quirks);
  EXPECT_EQ(args.emu.model.fault_seed, 16u);
  EXPECT_DOUBLE_EQ(args.emu.model.fault_rate, 0.25);
  EXPECT_EQ(args.emu.model.pcie_seed, UINT64_MAX);
  EXPECT_EQ(args.base_dest_id, 0x200u);
  EXPECT_EQ(args.emu.id, 0u) << "of a fabric";
  EXPECT_EQ(args.queues.tx_log2, 10u);
  EXPECT_EQ(args.queues.shared_log2, 6u);
  EXPECT_EQ(args.queues.dedicated_log2, 4u);
  EXPECT_EQ(args.queues.doorbell_log2, 3u);
  EXPECT_EQ(args.queues.dma_log2, 5u);
  EXPECT_EQ(args.queues.event_log2, 7u);
  EXPECT_EQ(args.emu.model.push_slots_log2, 4u);
  EXPECT_TRUE(args.queues.push);
  EXPECT_EQ(args.card.response_timeout_us, 10u);
  EXPECT_EQ(args.card.receive_timeout_us, 20u);
  EXPECT_EQ(args.card.retry_limit, 0u);
  EXPECT_EQ(args.card.retry_delay_us, 7u);
  EXPECT_EQ(args.card.vf_qps, 3u);
}

TEST(CardDevargs, TakesFabrics) {
  const std::string name(63, 'n');
  CardArgs args;
  args.base_dest_id = 0x300;
  ASSERT_EQ(parse(("wire=shm:" + name).c_str(), &args), 0) << logged;
  EXPECT_EQ(args.wire, "shm:" + name);
  EXPECT_LT(args.wire.size(), sizeof(SharedCardLayout::wire)) << "with its 0";
  EXPECT_EQ(wire_in<name::Shm>(args).fabric, name);
  EXPECT_EQ(args.emu.id, 0x300u) << "the default";
  EXPECT_EQ(args.emu.id_step, 0x100u) << "is a wish";

  args = {};
  ASSERT_EQ(parse("destid=0x200,wire=shm:demo", &args), 0) << logged;
  EXPECT_EQ(args.emu.id, 0x200u);
  EXPECT_EQ(args.emu.id_step, 0u) << "that, or none";

  args = {.base_dest_id = 0x100};
  ASSERT_EQ(parse("id=0,wire=shm:demo", &args), 0) << logged;
  EXPECT_EQ(args.emu.id, 0u) << "the lowest that is free";
  EXPECT_EQ(args.emu.id_step, 0u);

  args = {.base_dest_id = 0x100};
  ASSERT_EQ(parse("wire=relay:lab,board=3", &args), 0) << logged;
  EXPECT_EQ(args.wire, "relay:lab");
  EXPECT_EQ(wire_in<name::Relay>(args).board, 3u);
  EXPECT_EQ(args.emu.id, 0u) << "one that the relay gives";
  ASSERT_EQ(parse("wire=relay:lab,id=7", &args), 0) << logged;
  EXPECT_EQ(args.emu.id, 7u);
  EXPECT_EQ(args.base_dest_id, 7u);

  args = {.base_dest_id = 0x100};
  ASSERT_EQ(parse("wire=emu:fabric,topology=f.json,at=left,id=3", &args), 0) << logged;
  EXPECT_EQ(args.wire, "emu:fabric/left");
  EXPECT_EQ(wire_in<name::Switched>(args).at, "left");
  EXPECT_EQ(args.emu.id, 0u);
  EXPECT_EQ(args.base_dest_id, 3u);

  args = {};
  ASSERT_EQ(parse("wire=udp:lab,members=/etc/lab,destid=7", &args), 0) << logged;
  EXPECT_EQ(wire_in<name::Udp>(args).fabric, "lab");
  EXPECT_EQ(wire_in<name::Udp>(args).members, "/etc/lab");
  EXPECT_EQ(args.emu.id, 7u);
  EXPECT_EQ(args.emu.id_step, 0u);

  args = {.base_dest_id = 0x100};
  ASSERT_EQ(parse("wire=udp:lab,bind=eth0,port=65535", &args), 0) << logged;
  EXPECT_EQ(wire_in<name::Udp>(args).bind, "eth0");
  EXPECT_EQ(wire_in<name::Udp>(args).port, 65535u);
  EXPECT_EQ(args.emu.id, 0u) << "found by its address";
}

TEST(CardDevargs, DerivesOneTimeoutFromTheOther) {
  CardArgs args;
  ASSERT_EQ(parse("response_timeout_us=30", &args), 0) << logged;
  EXPECT_EQ(args.card.receive_timeout_us, 60u);
}

// Keys of the device may stand among those of its card; `given` lists the keys in the text.
TEST(CardDevargs, KnowsTheKeysOfTheDevice) {
  std::string card;
  const OwnKeys own = {{"card", "a name", [&card](std::string_view text) {
                          card = text;
                          return !text.empty();
                        }}};
  CardArgs args;
  ASSERT_EQ(parse_devargs("raw_rio7", "qps=3,card=a,tx_ring=64", name::Place::kDevice, &args, own),
            0);
  EXPECT_EQ(card, "a");
  EXPECT_EQ(args.queues.tx_log2, 6u);
  EXPECT_EQ(args.given, (std::vector<std::string>{"qps", "card", "tx_ring"}));
  const auto refused = [&](const char* text) {
    logged.clear();
    base::set_log_sink(keep);
    EXPECT_EQ(parse_devargs("raw_rio7", text, name::Place::kDevice, &args, own), -EINVAL) << text;
    base::set_log_sink(nullptr);
    return logged;
  };
  EXPECT_NE(refused("wire=w,card=1,card=1").find("argument 'card' is given twice"),
            std::string::npos);
  EXPECT_NE(refused("card").find("bad value '' for argument 'card'"), std::string::npos);
  EXPECT_NE(refused("qpx=1").find("take one of card, tx_ring,"), std::string::npos);
  EXPECT_EQ(parse("card=1", &args), -EINVAL) << "no key of every device";
}

struct Bad {
  const char* text;
  const char* key;
  const char* allowed;
};

class BadDevargs : public testing::TestWithParam<Bad> {};

TEST_P(BadDevargs, NamesKeyAndRange) {
  CardArgs args;
  EXPECT_EQ(parse(GetParam().text, &args), -EINVAL);
  EXPECT_NE(logged.find("raw_rio7"), std::string::npos) << logged;
  EXPECT_NE(logged.find(std::string("'") + GetParam().key + "'"), std::string::npos) << logged;
  EXPECT_NE(logged.find(GetParam().allowed), std::string::npos) << logged;
  EXPECT_EQ(args.emu.model.queue_pairs, 2u) << "changed all the same";
}

constexpr const char* kEntries = "2 to 65536 entries, a power of two";
constexpr Bad kBad[] = {
    {"wire=", "wire", "loop, or a name"},
    {"wire=a/b", "wire", "letters, digits"},
    {"wire=shm:", "wire", "shm:"},
    {"wire=shm:.a", "wire", "no '.' first"},
    {"wire=shm:a/b", "wire", "letters, digits"},
    {"wire=udp:", "wire", "udp:"},
    {"wire=tcp:a", "wire", "shm:"},
    {"wire=shm:a,destid=65535", "id", "65533"},
    {"wire=udp:a,destid=1", "members", "belong together"},
    {"wire=udp:a,members=f", "id", "belong together"},
    {"wire=udp:a,members=f,destid=1,port=1", "port", "leave out"},
    {"wire=udp:a,port=65536", "port", "0 to 65535"},
    {"wire=udp:a,bind=", "bind", "an IP address"},
    {"wire=udp:a,members=", "members", "a file"},
    {"wire=shm:a,port=1", "port", "is for cards of udp"},
    {"members=f", "members", "is for cards of udp"},
    {"qps=0", "qps", "1 to 31"},
    {"qps=32", "qps", "1 to 31"},
    {"qps=x", "qps", "1 to 31"},
    {"qps", "qps", "1 to 31"},
    {"qps=-1", "qps", "1 to 31"},
    {"qps=99999999999999999999", "qps", "1 to 31"},
    {"stepping=manual", "stepping", "inline or thread"},
    {"exact=2", "exact", "0 or 1"},
    {"quirks=yes", "quirks", "0 or 1"},
    {"faults=1", "faults", "SEED:RATE"},
    {"faults=1:1.01", "faults", "0.0 to 1.0"},
    {"faults=1:-0.1", "faults", "0.0 to 1.0"},
    {"faults=1:nan", "faults", "0.0 to 1.0"},
    {"faults=a:0.1", "faults", "SEED:RATE"},
    {"pcie=", "pcie", "64-bit seed"},
    {"destid=65535", "id", "0 to 65535 - qps"},
    {"destid=65534", "id", "65533"},
    {"id=65534", "id", "65533"},
    {"qps=4,destid=65534", "id", "65531"},
    {"destid=x", "destid", "0 to 4294967294"},
    {"tx_ring=3", "tx_ring", kEntries},
    {"rx_ring=0", "rx_ring", kEntries},
    {"dedicated_ring=131072", "dedicated_ring", kEntries},
    {"doorbell_ring=1", "doorbell_ring", kEntries},
    {"dma_ring=12", "dma_ring", kEntries},
    {"event_ring=big", "event_ring", kEntries},
    {"response_timeout_us=0", "response_timeout_us", "1 to 10000000"},
    {"receive_timeout_us=20000001", "receive_timeout_us", "1 to 20000000"},
    {"receive_timeout_us=200001", "receive_timeout_us", "allowed is 1 to 200000"},
    {"response_timeout_us=7,receive_timeout_us=15", "receive_timeout_us", "allowed is 1 to 14"},
    {"retry_limit=1000001", "retry_limit", "0 (never give up) to 1000000"},
    {"retry_delay_us=0", "retry_delay_us", "1 to 1000000"},
    {"vf_qps=31", "vf_qps", "0 to 30"},
    {"push=2", "push", "0 or 1"},
    {"nonsense=1", "nonsense", "vf_qps, push, wire, qps"},
    {"exact=1,exact=1", "exact", "given twice"},
};

INSTANTIATE_TEST_SUITE_P(Each, BadDevargs, testing::ValuesIn(kBad));

TEST(CardDevargs, KeepsEmulationFromPciCards) {
  CardArgs args;
  EXPECT_EQ(parse("wire=loop", &args, name::Place::kPciDevice), -EINVAL);
  EXPECT_NE(logged.find("a PCI card"), std::string::npos) << logged;
  EXPECT_EQ(parse("destid=5,tx_ring=64", &args, name::Place::kPciDevice), 0) << logged;
  EXPECT_EQ(args.base_dest_id, 5u);
  EXPECT_EQ(args.queues.tx_log2, 6u);
  EXPECT_EQ(parse("destid=65534", &args, name::Place::kPciDevice), 0) << logged;
  EXPECT_EQ(parse("destid=65535", &args, name::Place::kPciDevice), -EINVAL);
  EXPECT_NE(logged.find("65534"), std::string::npos) << logged;
}

std::string slurp(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Page and pmdinfo name each argument that a device takes.
TEST(CardDevargs, AreDocumented) {
  const std::string page = slurp(CARDS_PAGE);
  const std::string info = slurp(RAW_RIO_PMDINFO);
  ASSERT_FALSE(page.empty());
  ASSERT_FALSE(info.empty());
  CardArgs unused;
  for (const name::OwnKey& key : card_keys(&unused)) {
    EXPECT_NE(page.find("| `" + key.key + "` | " + key.allowed + " | "), std::string::npos)
        << key.key;
    EXPECT_NE(info.find(key.key + "=<"), std::string::npos) << key.key;
  }
  for (const name::Key& key : name::keys()) {  // the page is held against these by page_test.cc
    EXPECT_TRUE(key.dpdk == 0 || info.find(std::string(key.key) + "=<") != std::string::npos)
        << key.key;
  }
}

}  // namespace
}  // namespace rio::pmd
