#include "pmd/api/card_name.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/pmd/api/log_lines.hpp"

namespace rio {
namespace {

TEST(CardName, Emulated) {
  CardName name;
  ASSERT_EQ(parse_card_name("emu:loop", &name), 0);
  EXPECT_TRUE(name.emulated);
  EXPECT_EQ(name.emu.wire, "loop");
  EXPECT_EQ(name.emu.queue_pairs, 1u);
  EXPECT_EQ(name.emu.stepping, pmd::Stepping::kInline);

  ASSERT_EQ(parse_card_name("emu:my-wire_1.x,qps=31,stepping=thread,exact=1,quirks=0,"
                            "faults=18446744073709551615:0.25,pcie=7",
                            &name),
            0);
  EXPECT_EQ(name.emu.wire, "my-wire_1.x");
  EXPECT_EQ(name.emu.queue_pairs, 31u);
  EXPECT_EQ(name.emu.stepping, pmd::Stepping::kThread);
  EXPECT_TRUE(name.emu.exact);
  EXPECT_FALSE(name.emu.quirks);
  EXPECT_EQ(name.emu.fault_seed, UINT64_MAX);
  EXPECT_EQ(name.emu.fault_rate, 0.25);
  EXPECT_EQ(name.emu.pcie_seed, 7u);
}

TEST(CardName, Shm) {
  CardName name;
  ASSERT_EQ(parse_card_name("shm:my-job_1.x", &name), 0);
  EXPECT_TRUE(name.emulated);
  EXPECT_EQ(name.emu.fabric, "my-job_1.x");
  EXPECT_EQ(name.emu.id, 0u);
  EXPECT_TRUE(name.emu.board.empty());
  EXPECT_TRUE(name.emu.pull);
  ASSERT_EQ(parse_card_name("shm:x,id=4294967294,board=b-1,qps=31,qp=30,pull=0,pcie=3", &name), 0);
  EXPECT_EQ(name.emu.id, 0xFFFFFFFEu);
  EXPECT_EQ(name.emu.board, "b-1");
  EXPECT_EQ(name.emu.queue_pairs, 31u);
  EXPECT_EQ(name.emu.board_pair, 30u);
  EXPECT_FALSE(name.emu.pull);
  EXPECT_EQ(name.emu.pcie_seed, 3u);

  test::LogLines log;
  for (const char* wrong : {"shm:", "shm:.", "shm:..", "shm:.x", "shm:a/b", "shm:a b"}) {
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
    EXPECT_TRUE(log.had("a card in a fabric of processes is shm:NAME")) << wrong;
  }
  EXPECT_EQ(parse_card_name("shm:" + std::string(64, 'x'), &name), -EINVAL);
  for (const char* wrong : {"shm:x,qp=1", "shm:x,board=b", "shm:x,board=b,qp=0", "shm:x,qps=2,qp=0",
                            "shm:x,board=b,qps=2"}) {
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
    EXPECT_TRUE(log.had("give all three options, or no qp")) << wrong << ": " << log.last();
  }
  for (const char* wrong : {"shm:x,id=4294967295", "shm:x,id=-1", "shm:x,pull=2", "shm:x,board=",
                            "shm:x,board=a/b", "shm:x,qp=31", "shm:x,wait=1", "shm:x,at=a"}) {
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
  }
}

TEST(CardName, Udp) {
  CardName name;
  ASSERT_EQ(parse_card_name("udp:my-job_1.x", &name), 0);
  EXPECT_TRUE(name.emulated);
  EXPECT_EQ(name.emu.udp_fabric, "my-job_1.x");
  EXPECT_EQ(name.emu.patience_s, 30u);
  ASSERT_EQ(parse_card_name("udp:x,bind=10.0.0.1,port=7000,patience=3,loss=5:0.5,qps=2", &name), 0);
  EXPECT_EQ(name.emu.bind, "10.0.0.1");
  EXPECT_EQ(name.emu.port, 7000u);
  EXPECT_EQ(name.emu.patience_s, 3u);
  EXPECT_EQ(name.emu.loss_seed, 5u);
  EXPECT_EQ(name.emu.loss_rate, 0.5);
  EXPECT_EQ(name.emu.queue_pairs, 2u);
  ASSERT_EQ(parse_card_name("udp:x,id=9,members=/etc/lab", &name), 0);
  EXPECT_EQ(name.emu.id, 9u);
  EXPECT_EQ(name.emu.members, "/etc/lab");

  test::LogLines log;
  for (const char* wrong : {"udp:", "udp:a/b", "udp:a b"}) {
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
    EXPECT_TRUE(log.had("a card in a fabric of machines is udp:NAME")) << wrong;
  }
  for (const char* wrong : {"udp:x,id=1", "udp:x,members=f", "udp:x,id=0,members=f"}) {
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
    EXPECT_TRUE(log.had("id= and members= belong together")) << wrong;
  }
  EXPECT_EQ(parse_card_name("udp:x,id=1,members=f,port=1", &name), -EINVAL);
  EXPECT_TRUE(log.had("leave out bind and port"));
  for (const char* wrong : {"udp:x,port=65536", "udp:x,patience=0", "udp:x,patience=3601",
                            "udp:x,loss=1", "udp:x,loss=1:2", "udp:x,bind=", "udp:x,board=b"}) {
    EXPECT_EQ(parse_card_name(wrong, &name), -EINVAL) << wrong;
  }
}

TEST(CardName, Sim) {
  CardName name;
  ASSERT_EQ(parse_card_name("sim:/run/user/1000/card a", &name), 0);
  EXPECT_FALSE(name.emulated);
  EXPECT_EQ(name.sim.socket, "/run/user/1000/card a");
  EXPECT_EQ(name.sim.wait_ms, 1000u);
  ASSERT_EQ(parse_card_name("sim:" + std::string(107, 'p') + ",wait=60000", &name), 0);
  EXPECT_EQ(name.sim.socket.size(), 107u);
  EXPECT_EQ(name.sim.wait_ms, 60000u);
  ASSERT_EQ(parse_card_name("emu:loop", &name), 0);
  EXPECT_EQ(name.sim.socket, "");
}

TEST(CardName, Pci) {
  CardName name;
  ASSERT_EQ(parse_card_name("0000:03:00.0", &name), 0);
  EXPECT_FALSE(name.emulated);
  EXPECT_EQ(name.pci_address, "0000:03:00.0");
  EXPECT_TRUE(name.options.reset);
  ASSERT_EQ(parse_card_name("a3:1f.7,reset=0,iova=virtual", &name), 0);
  EXPECT_EQ(name.pci_address, "0000:a3:1f.7");
  EXPECT_FALSE(name.options.reset);
  EXPECT_EQ(name.options.iova, pmd::vfio::IovaMode::kVirtual);
}

// Each wrong name is refused, and the log names the thing and the remedy.
TEST(CardName, WrongNamesAreRefused) {
  constexpr struct {
    const char* name;
    const char* named;
    const char* remedy;
  } kWrong[] = {
      {"", "\"\"", "emu:loop"},
      {"eth0", "\"eth0\"", "PCI address"},
      {"loop", "\"loop\"", "emu:loop"},
      {"emu:", "\"emu:\"", "1 to 63 letters"},
      {"emu:,qps=1", "\"emu:,qps=1\"", "1 to 63 letters"},
      {"emu:a b", "\"emu:a b\"", "1 to 63 letters"},
      {"sim:", "\"sim:\"", "listen:socket="},
      {"sim:,wait=1", "\"sim:,wait=1\"", "listen:socket="},
      {"sim:a,qps=1", "no option 'qps'", "there are: wait"},
      {"sim:a,wait=60001", "wait=60001", "0 to 60000"},
      {"sim:a,wait=1,wait=1", "wait is given twice", "leave one out"},
      {"0000:03:00", "0000:03:00", "lspci -D"},
      {"0000:03:20.0", "0000:03:20.0", "lspci -D"},
      {"0000:03:00.8", "0000:03:00.8", "lspci -D"},
      {"emu:loop,", "no option ''", "qps, stepping"},
      {"emu:loop,reset=1", "no option 'reset'", "qps, stepping"},
      {"0000:03:00.0,qps=1", "no option 'qps'", "reset, iova"},
      {"emu:loop,qps", "option qps=", "1 to 31"},
      {"emu:loop,qps=", "option qps=", "1 to 31"},
      {"emu:loop,qps=0", "option qps=0", "1 to 31"},
      {"emu:loop,qps=32", "option qps=32", "1 to 31"},
      {"emu:loop,qps=-1", "option qps=-1", "1 to 31"},
      {"emu:loop,qps=2x", "option qps=2x", "1 to 31"},
      {"emu:loop,qps=1,qps=1", "qps is given twice", "leave one out"},
      {"emu:loop,stepping=manual", "stepping=manual", "inline or thread"},
      {"emu:loop,exact=2", "exact=2", "0 or 1"},
      {"emu:loop,faults=1", "faults=1", "SEED:RATE"},
      {"emu:loop,faults=1:1.5", "faults=1:1.5", "0.0 to 1.0"},
      {"emu:loop,faults=1:nan", "faults=1:nan", "0.0 to 1.0"},
      {"emu:loop,pcie=seed", "pcie=seed", "64-bit seed"},
      {"0000:03:00.0,iova=physical", "iova=physical", "allocated or virtual"},
  };
  for (const auto& wrong : kWrong) {
    test::LogLines log;
    CardName name;
    name.pci_address = "untouched";
    EXPECT_EQ(parse_card_name(wrong.name, &name), -EINVAL) << wrong.name;
    EXPECT_EQ(name.pci_address, "untouched") << wrong.name;
    EXPECT_TRUE(log.had(wrong.named)) << wrong.name << ": " << log.last();
    EXPECT_NE(log.last().find(wrong.remedy), std::string::npos) << wrong.name << log.last();
  }
}

TEST(CardName, ALongSocketPathIsRefused) {
  test::LogLines log;
  CardName name;
  EXPECT_EQ(parse_card_name("sim:" + std::string(108, 'p'), &name), -EINVAL);
  EXPECT_TRUE(log.had("1 to 107 characters")) << log.last();
}

TEST(CardName, AMissingPciCardIsReported) {
  test::LogLines log;
  std::unique_ptr<pmd::Bus> bus;
  EXPECT_LT(open_bus("ffff:ff:1f.7", &bus), 0);
  EXPECT_EQ(bus, nullptr);
  EXPECT_FALSE(log.had("nothing of the kind"));
  EXPECT_FALSE(log.last().empty());
}

}  // namespace
}  // namespace rio
