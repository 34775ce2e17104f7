// Every kind of card and every key: accepted values, refused values, and their error texts.
#include "fpga/name/parse.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "fpga/name/keys.hpp"

namespace rio::name {
namespace {

constexpr Place kPlaces[] = {Place::kProgram, Place::kDevice, Place::kPciDevice, Place::kCardsim};

/// @return the error; empty: none.
std::string error_of(Place place, const std::string& text, CardName* out) {
  std::string error;
  const int rc = parse(place, text, {}, out, &error);
  EXPECT_EQ(rc, error.empty() ? 0 : -EINVAL) << text;
  return error;
}

CardName parsed(Place place, const std::string& text) {
  CardName name;
  EXPECT_EQ(error_of(place, text, &name), "") << text;
  return name;
}
CardName parsed(const std::string& text) {
  return parsed(Place::kProgram, text);
}

template <typename T>
T kind_in(const CardName& name) {
  EXPECT_TRUE(std::holds_alternative<T>(name.kind)) << name.kind.index();
  return std::holds_alternative<T>(name.kind) ? std::get<T>(name.kind) : T{};
}

TEST(Name, Cable) {
  CardName name = parsed("emu:loop");
  EXPECT_EQ(kind_in<Cable>(name).name, "loop");
  EXPECT_EQ(name.model.queue_pairs, 1u);
  EXPECT_EQ(name.model.stepping, Stepping::kInline);
  EXPECT_FALSE(name.model.exact);
  EXPECT_TRUE(name.model.quirks);
  EXPECT_EQ(name.model.fault_rate, 0.0);
  EXPECT_EQ(name.model.pcie_seed, 0u);
  EXPECT_TRUE(name.given.empty());

  name = parsed(
      "emu:my-wire_1.x,qps=31,stepping=thread,exact=1,quirks=0,"
      "faults=18446744073709551615:0.25,pcie=7");
  EXPECT_EQ(kind_in<Cable>(name).name, "my-wire_1.x");
  EXPECT_EQ(name.model.queue_pairs, 31u);
  EXPECT_EQ(name.model.stepping, Stepping::kThread);
  EXPECT_TRUE(name.model.exact);
  EXPECT_FALSE(name.model.quirks);
  EXPECT_EQ(name.model.fault_seed, UINT64_MAX);
  EXPECT_EQ(name.model.fault_rate, 0.25);
  EXPECT_EQ(name.model.pcie_seed, 7u);
}

TEST(Name, Switched) {
  const auto card = kind_in<Switched>(parsed("emu:fabric,topology=/etc/f.json,at=left"));
  EXPECT_EQ(card.topology, "/etc/f.json");
  EXPECT_EQ(card.at, "left");
}

TEST(Name, Shm) {
  CardName name = parsed("shm:my-job_1.x");
  EXPECT_EQ(kind_in<Shm>(name).fabric, "my-job_1.x");
  EXPECT_EQ(name.id, 0u);
  EXPECT_TRUE(kind_in<Shm>(name).board.empty());
  EXPECT_TRUE(kind_in<Shm>(name).pull);
  name = parsed("shm:x,id=4294967294,board=b-1,qps=31,qp=30,pull=0,pcie=3");
  EXPECT_EQ(name.id, 0xFFFFFFFEu);
  EXPECT_EQ(kind_in<Shm>(name).board, "b-1");
  EXPECT_EQ(name.model.queue_pairs, 31u);
  EXPECT_EQ(kind_in<Shm>(name).queue_pair, 30u);
  EXPECT_FALSE(kind_in<Shm>(name).pull);
  EXPECT_EQ(name.model.pcie_seed, 3u);
}

TEST(Name, Udp) {
  CardName name = parsed("udp:my-job_1.x");
  EXPECT_EQ(kind_in<Udp>(name).fabric, "my-job_1.x");
  EXPECT_EQ(kind_in<Udp>(name).patience_s, 30u);
  name = parsed("udp:x,bind=10.0.0.1,port=7000,patience=3,loss=5:0.5,qps=2");
  EXPECT_EQ(kind_in<Udp>(name).bind, "10.0.0.1");
  EXPECT_EQ(kind_in<Udp>(name).port, 7000u);
  EXPECT_EQ(kind_in<Udp>(name).patience_s, 3u);
  EXPECT_EQ(kind_in<Udp>(name).loss_seed, 5u);
  EXPECT_EQ(kind_in<Udp>(name).loss_rate, 0.5);
  EXPECT_EQ(name.model.queue_pairs, 2u);
  name = parsed("udp:x,id=9,members=/etc/lab");
  EXPECT_EQ(name.id, 9u);
  EXPECT_EQ(kind_in<Udp>(name).members, "/etc/lab");
  EXPECT_EQ(parsed("udp:x,id=0").id, 0u);
}

TEST(Name, Relay) {
  CardName name = parsed("relay:lab");
  EXPECT_EQ(kind_in<Relay>(name).name, "lab");
  EXPECT_EQ(kind_in<Relay>(name).board, ~0u);
  name = parsed("relay:lab,board=63,id=5");
  EXPECT_EQ(kind_in<Relay>(name).board, 63u);
  EXPECT_EQ(name.id, 5u);
}

TEST(Name, Sim) {
  EXPECT_EQ(kind_in<Sim>(parsed("sim:/run/user/1000/card a")).socket, "/run/user/1000/card a");
  EXPECT_EQ(kind_in<Sim>(parsed("sim:a")).wait_ms, 1000u);
  const auto card = kind_in<Sim>(parsed("sim:" + std::string(107, 'p') + ",wait=60000"));
  EXPECT_EQ(card.socket.size(), 107u);
  EXPECT_EQ(card.wait_ms, 60000u);
}

TEST(Name, Pci) {
  EXPECT_EQ(kind_in<Pci>(parsed("0000:03:00.0")).address, "0000:03:00.0");
  EXPECT_TRUE(kind_in<Pci>(parsed("0000:03:00.0")).reset);
  EXPECT_FALSE(kind_in<Pci>(parsed("0000:03:00.0")).iova_is_va);
  EXPECT_TRUE(kind_in<Pci>(parsed("0000:03:00.0")).release);
  EXPECT_FALSE(kind_in<Pci>(parsed("0000:03:00.0,release=0")).release);
  EXPECT_FALSE(kind_in<Pci>(parsed("0000:03:00.0")).iommufd);
  EXPECT_TRUE(kind_in<Pci>(parsed("0000:03:00.0,iommufd=1")).iommufd);
  const auto card = kind_in<Pci>(parsed("a3:1f.7,reset=0,iova=virtual"));
  EXPECT_EQ(card.address, "0000:a3:1f.7");
  EXPECT_FALSE(card.reset);
  EXPECT_TRUE(card.iova_is_va);
}

TEST(Name, OfCardsim) {
  CardName name = parsed(Place::kCardsim, "plain:bar=/dev/shm/bar,ram=/dev/shm/ram");
  EXPECT_EQ(kind_in<Plain>(name).bar, "/dev/shm/bar");
  EXPECT_EQ(kind_in<Plain>(name).guest.ram, "/dev/shm/ram");
  EXPECT_EQ(kind_in<Plain>(name).guest.monitor, "");
  EXPECT_EQ(kind_in<Plain>(name).guest.bdf, 0x20);
  EXPECT_EQ(name.label, "");
  EXPECT_EQ(name.at, "");

  name = parsed(Place::kCardsim,
                "doorbell:socket=s,ram=r,monitor=m,vectors=64,devfn=1f.7,name=left,at=host,"
                "qps=31,exact=1,quirks=0,faults=18446744073709551615:0.25,pcie=7,early=1,torn=1,"
                "flights=1,resting=0,rx_contexts=1023,poisoned=7,pass_over=65535,push_slots=8,"
                "barrier=0,early_room=65535,rail=0");
  EXPECT_TRUE(name.model.early_status);
  EXPECT_TRUE(name.model.torn);
  EXPECT_EQ(name.model.flights, 1u);
  EXPECT_EQ(name.model.resting, 0u);
  EXPECT_EQ(name.model.rx_contexts, 1023u);
  EXPECT_EQ(name.model.poisoned, 7u);
  EXPECT_EQ(name.model.pass_over, 65535u);
  EXPECT_EQ(name.model.push_slots_log2, 8u);
  EXPECT_FALSE(name.model.barrier);
  EXPECT_EQ(name.model.early_notices, 65535u);
  EXPECT_FALSE(name.model.rail);
  EXPECT_EQ(kind_in<Doorbell>(name).socket, "s");
  EXPECT_EQ(kind_in<Doorbell>(name).guest.monitor, "m");
  EXPECT_EQ(kind_in<Doorbell>(name).vectors, 64u);
  EXPECT_EQ(kind_in<Doorbell>(name).guest.bdf, 0xFF);
  EXPECT_EQ(name.label, "left");
  EXPECT_EQ(name.at, "host");
  EXPECT_EQ(name.model.queue_pairs, 31u);
  EXPECT_EQ(name.model.fault_seed, UINT64_MAX);
  name = parsed(Place::kCardsim, "doorbell:socket=s,ram=r,devfn=a3:04.1");
  EXPECT_EQ(kind_in<Doorbell>(name).guest.bdf, 0xA321);
  EXPECT_EQ(kind_in<Doorbell>(name).vectors, 2u);

  name = parsed(Place::kCardsim, "listen:socket=" + std::string(107, 'p'));
  EXPECT_EQ(kind_in<Listen>(name).socket, std::string(107, 'p'));
}

// Devices of DPDK: the card is the value of wire=, anywhere in the list.
TEST(Name, OfDevices) {
  CardName name = parsed(Place::kDevice, "");
  EXPECT_EQ(kind_in<Cable>(name).name, "loop");
  EXPECT_EQ(name.model.queue_pairs, 2u);
  EXPECT_EQ(kind_in<Cable>(parsed(Place::kDevice, "qps=3,wire=emu:left,exact=1")).name, "left");
  EXPECT_EQ(kind_in<Shm>(parsed(Place::kDevice, "id=5,wire=shm:demo,pull=0")).fabric, "demo");
  EXPECT_EQ(kind_in<Relay>(parsed(Place::kDevice, "wire=relay:lab,board=3")).board, 3u);
  EXPECT_EQ(kind_in<Udp>(parsed(Place::kDevice, "wire=udp:lab,patience=9")).patience_s, 9u);
  EXPECT_EQ(kind_in<Switched>(parsed(Place::kDevice, "at=b,wire=emu:fabric,topology=f")).at, "b");
  EXPECT_EQ(parsed(Place::kPciDevice, "id=0x300").id, 0x300u);
  EXPECT_EQ(kind_in<Pci>(parsed(Place::kPciDevice, "")).address, "");
}

TEST(Name, OldSpellings) {
  // Wires of devices were once named without their kind.
  EXPECT_EQ(kind_in<Cable>(parsed(Place::kDevice, "wire=loop")).name, "loop");
  EXPECT_EQ(kind_in<Cable>(parsed(Place::kDevice, "wire=left-right")).name, "left-right");
  EXPECT_EQ(kind_in<Cable>(parsed(Place::kDevice, "wire=fabric")).name, "fabric");
  // id= was destid= there.
  EXPECT_EQ(parsed(Place::kDevice, "destid=0x200,wire=shm:demo").id, 0x200u);
  EXPECT_EQ(parsed(Place::kPciDevice, "destid=5").id, 5u);
  EXPECT_EQ(parsed("shm:x,destid=5").id, 5u);
  EXPECT_TRUE(parsed("shm:x,destid=5").has("id"));
  CardName name;
  EXPECT_EQ(error_of(Place::kProgram, "shm:x,id=5,destid=5", &name),
            "argument 'id' is given twice: leave one out");
  // A list of arguments may have empty ones.
  EXPECT_EQ(parsed(Place::kDevice, "qps=3,").model.queue_pairs, 3u);
}

// All numbers have the same notation: decimal, or hexadecimal after 0x.
TEST(Name, Numbers) {
  EXPECT_EQ(parsed("emu:loop,pcie=0x10").model.pcie_seed, 16u);
  EXPECT_EQ(parsed("emu:loop,qps=0x1f").model.queue_pairs, 31u);
  EXPECT_EQ(parsed("emu:loop,faults=0xA:1").model.fault_seed, 10u);
  EXPECT_EQ(parsed("shm:x,id=0x100").id, 256u);
  EXPECT_EQ(kind_in<Udp>(parsed("udp:x,port=0x50")).port, 80u);
  EXPECT_EQ(parsed(Place::kDevice, "pcie=0x10").model.pcie_seed, 16u);
  EXPECT_EQ(parsed(Place::kCardsim, "listen:socket=s,pcie=0x10").model.pcie_seed, 16u);
}

TEST(Name, OwnKeysOfTheCaller) {
  std::string card;
  const OwnKey own[] = {{"card", "a name", [&card](std::string_view value) {
                           card = value;
                           return !value.empty();
                         }}};
  CardName name;
  std::string error;
  ASSERT_EQ(parse(Place::kDevice, "qps=3,card=raw_rio0", own, &name, &error), 0) << error;
  EXPECT_EQ(card, "raw_rio0");
  EXPECT_EQ(name.given, (std::vector<std::string>{"qps", "card"}));
  ASSERT_EQ(parse(Place::kDevice, "card", own, &name, &error), -EINVAL);
  EXPECT_EQ(error, "bad value '' for argument 'card': allowed is a name");
  ASSERT_EQ(parse(Place::kDevice, "card=a,card=a", own, &name, &error), -EINVAL);
  EXPECT_EQ(error, "argument 'card' is given twice: leave one out");
  ASSERT_EQ(parse(Place::kDevice, "cards=a", own, &name, &error), -EINVAL);
  EXPECT_NE(error.find("take one of card, wire, qps, id,"), std::string::npos) << error;
}

struct Wrong {
  Place place;
  const char* text;
  const char* told;
};

class WrongName : public testing::TestWithParam<Wrong> {};

// Each wrong name is refused, leaves the output alone, and the error says what is allowed.
TEST_P(WrongName, IsToldWithTheRemedy) {
  CardName name;
  name.label = "untouched";
  const std::string error = error_of(GetParam().place, GetParam().text, &name);
  EXPECT_NE(error.find(GetParam().told), std::string::npos) << GetParam().text << ": " << error;
  EXPECT_EQ(name.label, "untouched");
}

constexpr Wrong kProgram[] = {
    {Place::kProgram, "", "no such card: write emu:fabric,"},
    {Place::kProgram, "eth0", "as lspci -D writes it"},
    {Place::kProgram, "loop", "emu:loop or emu:NAME"},
    {Place::kProgram, "tcp:a", "shm:FABRIC, udp:FABRIC, relay:NAME, sim:SOCKET"},
    {Place::kProgram, "emu:", "1 to 63 letters"},
    {Place::kProgram, "emu:,qps=1", "1 to 63 letters"},
    {Place::kProgram, "emu:a b", "bad value 'emu:a b' for argument 'card'"},
    {Place::kProgram, "shm:", "no '.' first"},
    {Place::kProgram, "shm:.", "no '.' first"},
    {Place::kProgram, "shm:..", "no '.' first"},
    {Place::kProgram, "shm:.x", "no '.' first"},
    {Place::kProgram, "shm:a/b", "letters, digits"},
    {Place::kProgram, "shm:a b", "letters, digits"},
    {Place::kProgram, "udp:", "1 to 63 letters"},
    {Place::kProgram, "udp:a/b", "1 to 63 letters"},
    {Place::kProgram, "udp:a b", "1 to 63 letters"},
    {Place::kProgram, "relay:", "no '.' first"},
    {Place::kProgram, "relay:.a", "no '.' first"},
    {Place::kProgram, "sim:", "listen:socket="},
    {Place::kProgram, "sim:,wait=1", "listen:socket="},
    {Place::kProgram, "0000:03:00", "lspci -D"},
    {Place::kProgram, "0000:03:20.0", "lspci -D"},
    {Place::kProgram, "0000:03:00.8", "lspci -D"},
    {Place::kProgram, "emu:loop,",
     "no argument '' for an emulated card: take one of qps, stepping, exact, quirks, faults, pcie, "
     "early"},
    {Place::kProgram, "emu:loop,reset=1", "('reset' is for cards of PCI)"},
    {Place::kProgram, "emu:loop,board=1", "('board' is for cards of shm, relay)"},
    {Place::kProgram, "emu:loop,nonsense=1", "no argument 'nonsense' for an emulated card"},
    {Place::kProgram, "sim:a,qps=1", "no argument 'qps' for a sim: card: take one of wait"},
    {Place::kProgram, "0000:03:00.0,qps=1",
     "no argument 'qps' for a PCI card: take one of reset, iova"},
    {Place::kProgram, "shm:x,wait=1", "no argument 'wait'"},
    {Place::kProgram, "shm:x,at=a", "no argument 'at'"},
    {Place::kProgram, "udp:x,board=b", "no argument 'board'"},
    {Place::kProgram, "emu:loop,wire=x", "no argument 'wire'"},
    {Place::kProgram, "emu:loop,topology=f,at=a", "no argument 'topology'"},
    {Place::kProgram, "emu:fabric", "'topology' is missing"},
    {Place::kProgram, "emu:fabric,at=a", "'topology' is missing"},
    {Place::kProgram, "emu:fabric,topology=f", "'at' is missing"},
    {Place::kProgram, "emu:loop,qps", "bad value '' for argument 'qps': allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=", "allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=0", "bad value '0' for argument 'qps': allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=32", "allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=-1", "allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=2x", "allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=99999999999999999999", "allowed is 1 to 31"},
    {Place::kProgram, "emu:loop,qps=1,qps=1", "argument 'qps' is given twice: leave one out"},
    {Place::kProgram, "emu:loop,stepping=manual", "inline or thread"},
    {Place::kProgram, "emu:loop,exact=2", "0 or 1"},
    {Place::kProgram, "emu:loop,quirks=yes", "0 or 1"},
    {Place::kProgram, "emu:loop,faults=1", "SEED:RATE"},
    {Place::kProgram, "emu:loop,faults=a:0.1", "SEED:RATE"},
    {Place::kProgram, "emu:loop,faults=1:", "0.0 to 1.0"},
    {Place::kProgram, "emu:loop,faults=1:1.5", "0.0 to 1.0"},
    {Place::kProgram, "emu:loop,faults=1:-0.1", "0.0 to 1.0"},
    {Place::kProgram, "emu:loop,faults=1:nan", "0.0 to 1.0"},
    {Place::kProgram, "emu:loop,faults=1:0.1x", "0.0 to 1.0"},
    {Place::kProgram, "emu:loop,pcie=seed", "64-bit seed"},
    {Place::kProgram, "emu:loop,pcie=-1", "64-bit seed"},
    {Place::kProgram, "emu:loop,pcie=", "64-bit seed"},
    {Place::kProgram, "emu:loop,pcie=0x", "64-bit seed"},
    {Place::kProgram, "shm:x,id=4294967295", "0 to 4294967294"},
    {Place::kProgram, "shm:x,id=-1", "0 to 4294967294"},
    {Place::kProgram, "shm:x,destid=-1", "bad value '-1' for argument 'destid'"},
    {Place::kProgram, "shm:x,pull=2", "0 or 1"},
    {Place::kProgram, "shm:x,board=", "1 to 31 letters"},
    {Place::kProgram, "shm:x,board=a/b", "1 to 31 letters"},
    {Place::kProgram, "shm:x,qp=31", "0 to 30"},
    {Place::kProgram, "shm:x,qp=1", "give all three, or no 'qp'"},
    {Place::kProgram, "shm:x,board=b", "give all three, or no 'qp'"},
    {Place::kProgram, "shm:x,board=b,qp=0", "give all three, or no 'qp'"},
    {Place::kProgram, "shm:x,qps=2,qp=0", "give all three, or no 'qp'"},
    {Place::kProgram, "shm:x,board=b,qps=2", "give all three, or no 'qp'"},
    {Place::kProgram, "udp:x,id=1", "belong together"},
    {Place::kProgram, "udp:x,members=f", "belong together"},
    {Place::kProgram, "udp:x,id=0,members=f", "belong together"},
    {Place::kProgram, "udp:x,id=1,members=f,port=1", "leave out 'bind' and 'port'"},
    {Place::kProgram, "udp:x,id=1,members=f,bind=eth0", "leave out 'bind' and 'port'"},
    {Place::kProgram, "udp:x,port=65536", "0 to 65535"},
    {Place::kProgram, "udp:x,patience=0", "1 to 3600"},
    {Place::kProgram, "udp:x,patience=3601", "1 to 3600"},
    {Place::kProgram, "udp:x,loss=1", "SEED:RATE"},
    {Place::kProgram, "udp:x,loss=1:2", "0.0 to 1.0"},
    {Place::kProgram, "udp:x,bind=", "an IP address"},
    {Place::kProgram, "udp:x,members=", "a file"},
    {Place::kProgram, "relay:x,board=64", "0 to 63"},
    {Place::kProgram, "sim:a,wait=60001", "0 to 60000"},
    {Place::kProgram, "sim:a,wait=1,wait=1", "'wait' is given twice"},
    {Place::kProgram, "0000:03:00.0,iova=physical", "allocated or virtual"},
    {Place::kProgram, "0000:03:00.0,reset=2", "0 or 1"},
    {Place::kProgram, "listen:socket=a", "open one that listens as sim:SOCKET"},
    {Place::kProgram, "plain:bar=b,ram=r", "inside of the guest, by its PCI address"},
};
INSTANTIATE_TEST_SUITE_P(Program, WrongName, testing::ValuesIn(kProgram));

constexpr Wrong kDevice[] = {
    {Place::kDevice, "wire", "loop, or a name"},
    {Place::kDevice, "wire=", "loop, or a name"},
    {Place::kDevice, "wire=a/b", "bad value 'a/b' for argument 'wire': allowed is loop, or a name"},
    {Place::kDevice, "wire=tcp:a", "shm:FABRIC"},
    {Place::kDevice,
     "wire=shm:", "bad value 'shm:' for argument 'wire': allowed is shm: and a name"},
    {Place::kDevice, "wire=shm:.a", "no '.' first"},
    {Place::kDevice, "wire=shm:a/b", "letters, digits"},
    {Place::kDevice, "wire=udp:", "1 to 63 letters"},
    {Place::kDevice, "wire=emu:", "1 to 63 letters"},
    {Place::kDevice, "wire=a,wire=a", "argument 'wire' is given twice"},
    {Place::kDevice, "wire=sim:/tmp/a", "EAL takes a PCI card by -a ADDRESS"},
    {Place::kDevice, "wire=0000:03:00.0", "EAL takes a PCI card by -a ADDRESS"},
    {Place::kDevice, "wire=listen:socket=a", "take one of emu:fabric"},
    {Place::kDevice, "wire=udp:a,destid=1", "belong together"},
    {Place::kDevice, "wire=udp:a,members=f", "belong together"},
    {Place::kDevice, "wire=udp:a,members=f,destid=1,port=1", "leave out"},
    {Place::kDevice, "wire=shm:a,port=1", "('port' is for cards of udp)"},
    {Place::kDevice, "members=f", "('members' is for cards of udp)"},
    {Place::kDevice, "wire=shm:a,board=b,qps=2,qp=0", "no argument 'board'"},
    {Place::kDevice, "nonsense=1",
     "no argument 'nonsense' for an emulated card: take one of wire, qps"},
    {Place::kDevice, "exact=1,exact=1", "given twice"},
    {Place::kPciDevice, "wire=loop", "no argument 'wire' for a PCI card: take one of id"},
    {Place::kPciDevice, "reset=1", "no argument 'reset' for a PCI card"},
    {Place::kPciDevice, "qps=1", "no argument 'qps' for a PCI card"},
};
INSTANTIATE_TEST_SUITE_P(Device, WrongName, testing::ValuesIn(kDevice));

constexpr Wrong kCardsim[] = {
    {Place::kCardsim, "", "write plain:bar=FILE,ram=FILE, doorbell:socket=PATH,ram=FILE, listen:"},
    {Place::kCardsim, "plain", "write plain:"},
    {Place::kCardsim, "plane:bar=b,ram=r", "write plain:"},
    {Place::kCardsim, "emu:loop", "cannot be made by rio-cardsim: take one of plain:"},
    {Place::kCardsim, "0000:03:00.0", "cannot be made by rio-cardsim"},
    {Place::kCardsim, "plain:", "no argument ''"},
    {Place::kCardsim, "plain:bar=b", "'ram' is missing"},
    {Place::kCardsim, "plain:ram=r", "'bar' is missing"},
    {Place::kCardsim, "plain:bar=b,ram=r,", "no argument ''"},
    {Place::kCardsim, "plain:bar=b,ram=r,bar=c", "'bar' is given twice"},
    {Place::kCardsim, "plain:bar=b,ram=r,vectors=2", "('vectors' is for cards of doorbell)"},
    {Place::kCardsim, "plain:bar=b,ram=r,stepping=thread", "no argument 'stepping'"},
    {Place::kCardsim, "plain:bar=,ram=r", "bad value '' for argument 'bar'"},
    {Place::kCardsim, "plain:bar,ram=r", "bad value '' for argument 'bar'"},
    {Place::kCardsim, "plain:bar=b,ram=r,qps=0", "1 to 31"},
    {Place::kCardsim, "plain:bar=b,ram=r,qps=1x", "1 to 31"},
    {Place::kCardsim, "plain:bar=b,ram=r,exact=2", "0 or 1"},
    {Place::kCardsim, "plain:bar=b,ram=r,faults=1", "SEED:RATE"},
    {Place::kCardsim, "plain:bar=b,ram=r,faults=1:nan", "0.0 to 1.0"},
    {Place::kCardsim, "plain:bar=b,ram=r,pcie=-1", "64-bit seed"},
    {Place::kCardsim, "plain:bar=b,ram=r,devfn=4", "DEVICE.FUNCTION"},
    {Place::kCardsim, "plain:bar=b,ram=r,devfn=20.0", "DEVICE.FUNCTION"},
    {Place::kCardsim, "plain:bar=b,ram=r,devfn=04.8", "DEVICE.FUNCTION"},
    {Place::kCardsim, "plain:bar=b,ram=r,devfn=100:04.0", "DEVICE.FUNCTION"},
    {Place::kCardsim, "plain:bar=b,ram=r,devfn=1:0:04.0", "DEVICE.FUNCTION"},
    {Place::kCardsim, "doorbell:ram=r", "'socket' is missing"},
    {Place::kCardsim, "doorbell:socket=s,ram=r,vectors=0", "1 to 64"},
    {Place::kCardsim, "doorbell:socket=s,ram=r,vectors=65", "1 to 64"},
    {Place::kCardsim, "listen:socket=s,ram=r", "no argument 'ram' for a listen: card"},
    {Place::kCardsim, "listen:socket=s,name=", "bad value '' for argument 'name'"},
};
INSTANTIATE_TEST_SUITE_P(Cardsim, WrongName, testing::ValuesIn(kCardsim));

TEST(Name, TooLong) {
  CardName name;
  const std::string long_name(64, 'x');
  const std::string long_path(108, 'p');
  for (const char* const prefix : {"emu:", "shm:", "udp:", "relay:"}) {
    EXPECT_NE(error_of(Place::kProgram, prefix + long_name, &name), "") << prefix;
    EXPECT_EQ(error_of(Place::kProgram, prefix + long_name.substr(1), &name), "") << prefix;
  }
  EXPECT_NE(error_of(Place::kProgram, "sim:" + long_path, &name).find("at most 107"),
            std::string::npos);
  EXPECT_NE(error_of(Place::kCardsim, "listen:socket=" + long_path, &name).find("at most 107"),
            std::string::npos);
  EXPECT_NE(error_of(Place::kCardsim, "doorbell:socket=s,ram=r,monitor=" + long_path, &name)
                .find("at most 107"),
            std::string::npos);
  EXPECT_NE(error_of(Place::kProgram, "shm:x,board=" + std::string(32, 'b'), &name), "");
}

// A key is refused with each kind of card that does not have it, and the error names the key.
TEST(Name, EachKeyOfEachKind) {
  for (const Place place : kPlaces) {
    for (const KindRow& row : kinds()) {
      if ((row.bit & kinds_at(place)) == 0 || place == Place::kPciDevice) {
        continue;
      }
      const std::string prefix(row.prefix);
      const std::string card = row.prefix.empty()           ? "3:00.0"
                               : row.allowed == nullptr     ? prefix
                               : row.prefix == "emu:fabric" ? prefix
                                                            : prefix + "x";
      for (const Key& key : keys()) {
        const bool is_device = place == Place::kDevice;
        std::string text = is_device ? "wire=" + card : card;
        text += text.ends_with(':') ? "" : ",";
        CardName name;
        std::string error = error_of(place, text + std::string(key.key) + "=\x01", &name);
        // "name" and paths take any text; the error then names a missing argument.
        Kinds having = 0;
        for (const Key& same : keys()) {
          having |= same.key == key.key ? (is_device ? same.dpdk : same.kinds) : 0;
        }
        EXPECT_EQ(error.find("no argument '" + std::string(key.key) + "'") == std::string::npos,
                  (having & row.bit) != 0)
            << text << key.key << ": " << error;
      }
    }
  }
}

TEST(Name, WireOfADevice) {
  EXPECT_EQ(wire_of(""), "loop");
  EXPECT_EQ(wire_of("qps=3"), "loop");
  EXPECT_EQ(wire_of("qps=3,wire=a,exact=1"), "a");
  EXPECT_EQ(wire_of("wire=emu:a.b-c"), "a.b-c");
  EXPECT_EQ(wire_of("wire=shm:x"), "shm:x");
  EXPECT_EQ(wire_of("wire=emu:fabric,at=left"), "emu:fabric/left");
  EXPECT_EQ(wire_of("rewire=b"), "loop");
}

TEST(Name, HelpOfCardsimNamesEachKey) {
  const std::string help = cardsim_help();
  for (const char* key :
       {"bar=", "socket=", "ram=", "monitor=", "devfn=", "vectors=", "name=", "qps=", "exact=",
        "quirks=", "faults=", "pcie=", "early=", "torn=", "barrier=", "early_room=", "rail="}) {
    EXPECT_NE(help.find(key), std::string::npos) << key;
  }
  EXPECT_NE(help.find("; plain, doorbell, listen\n"), std::string::npos) << help;
  EXPECT_EQ(help.find("stepping="), std::string::npos) << help;
}

}  // namespace
}  // namespace rio::name
