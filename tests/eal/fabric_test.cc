// Cards of several DPDK processes on one wire. This process is not an EAL process: it starts them
// from the same program with --role, and talks to them over pipes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/eal/child_process.hpp"
#include "tests/eal/eal_process.hpp"
#include "tests/eal/fabric_worker.hpp"

namespace rio::test {
namespace {

std::string mode_flag = "--eal=no-huge";

class Fabric : public testing::Test {
 protected:
  static std::string fabric() { return "eal-test-" + std::to_string(getpid()); }
  /// Starts a process. @param args of its raw device, besides the wire. @param dest_id that it has
  /// to get.
  static std::unique_ptr<ChildProcess> process(const std::string& args, uint32_t dest_id) {
    static int number = 0;
    auto child = std::make_unique<ChildProcess>(std::vector<std::string>{
        "--role=worker", mode_flag, own_prefix("fabric" + std::to_string(number++)), args});
    EXPECT_EQ(child->line(), "destid " + std::to_string(dest_id)) << args;
    return child;
  }
  static std::unique_ptr<ChildProcess> member(const std::string& args, uint32_t dest_id) {
    return process("wire=shm:" + fabric() + args, dest_id);
  }
  /// Exchanges messages of all lengths, both ways at once.
  static void exchange(ChildProcess& a, uint32_t a_id, ChildProcess& b, uint32_t b_id) {
    ASSERT_TRUE(a.tell("exchange " + std::to_string(b_id)));
    ASSERT_TRUE(b.tell("exchange " + std::to_string(a_id)));
    EXPECT_EQ(a.line(), "exchanged");
    EXPECT_EQ(b.line(), "exchanged");
  }
  static void stop(ChildProcess& child) {
    EXPECT_TRUE(child.tell("stop"));
    EXPECT_EQ(child.wait(), 0);
  }
};

TEST_F(Fabric, ProcessesAskForTheirDestIds) {
  const auto a = member(",destid=0x100", 0x100);
  const auto b = member(",destid=0x200", 0x200);
  exchange(*a, 0x100, *b, 0x200);
  stop(*a);
  stop(*b);
}

TEST_F(Fabric, WithoutArgumentsEachGetsItsOwn) {
  const auto a = member("", 0x100);
  const auto b = member("", 0x200);
  const auto c = member(",destid=0x102", 0x102);  // behind the two queue pairs of the first process
  const auto d = member(",qps=1", 0x300);
  exchange(*a, 0x100, *b, 0x200);
  exchange(*a, 0x100, *d, 0x300);
  for (const auto* const each : {&a, &b, &c, &d}) {
    stop(**each);
  }
}

TEST_F(Fabric, OthersOutliveAKilledProcess) {
  const auto a = member("", 0x100);
  auto b = member("", 0x200);
  const auto c = member("", 0x300);
  ASSERT_TRUE(b->tell("sink 256"));
  ASSERT_TRUE(a->tell("stream 512"));
  EXPECT_EQ(a->line(), "streaming");
  EXPECT_EQ(b->line(), "sinking");
  b->kill9();
  EXPECT_EQ(a->line(), "failed");
  exchange(*a, 0x100, *c, 0x300);
  b = member("", 0x200);  // a destID that is free again
  exchange(*a, 0x100, *b, 0x200);
  exchange(*b, 0x200, *c, 0x300);
  for (const auto* const each : {&a, &c}) {
    stop(**each);
  }
  stop(*b);
}

TEST_F(Fabric, DestIdsCannotChangeInAFabric) {
  const auto a = member(",destid=5", 5);
  EXPECT_EQ(a->ask("set_dest_id 6"), "set " + std::to_string(-ENOTSUP));
  const auto b = member(",destid=9", 9);
  exchange(*a, 5, *b, 9);
  ChildProcess late(
      {"--role=worker", mode_flag, own_prefix("late"), "wire=shm:" + fabric() + ",destid=9"});
  EXPECT_EQ(late.line(), "no device") << "it asked for a destID that is taken";
  EXPECT_EQ(a->ask("configure 6"), "configured " + std::to_string(-EINVAL));
  EXPECT_EQ(a->ask("configure 5"), "configured 0");
  stop(*a);
  stop(*b);
}

TEST_F(Fabric, MachinesFindEachOtherByAFile) {
  const std::string file = "/tmp/rio-eal-members-" + std::to_string(getpid());
  const auto port = 20000 + getpid() % 20000;  // below the range that the kernel assigns
  std::ofstream(file) << "256 127.0.0.1:" << port << "\n512 127.0.0.1:" << port + 1 << "\n";
  const std::string wire = "wire=udp:" + fabric() + ",members=" + file;
  const auto a = process(wire + ",destid=0x100", 0x100);
  const auto b = process(wire + ",destid=0x200", 0x200);
  exchange(*a, 0x100, *b, 0x200);
  stop(*a);
  stop(*b);
  unlink(file.c_str());
}

int run_role(int argc, char** argv) {
  const EalMode mode = take_mode(&argc, argv);
  if (argc != 4) {
    return 1;
  }
  std::vector<std::string> args = {"--no-telemetry", std::string("--vdev=raw_rio0,") + argv[3]};
  if (mode == EalMode::kInMemory) {
    args.insert(args.end(), {"-m", "16"});  // to begin with, since there are four processes
  }
  if (start_eal(mode, argv[2], args) < 0) {
    return 1;
  }
  const int rc = run_fabric_worker("raw_rio0");
  end_eal();
  return rc;
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  if (argc > 1 && std::strncmp(argv[1], "--role=", 7) == 0) {
    return rio::test::run_role(argc, argv);
  }
  if (argc > 1 && std::strncmp(argv[1], "--eal=", 6) == 0) {
    rio::test::mode_flag = argv[1];
  }
  const rio::test::EalMode mode = rio::test::take_mode(&argc, argv);
  testing::InitGoogleTest(&argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  if (const std::string why = rio::test::why_not(mode, 64); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return rio::test::kSkipped;
  }
  return RUN_ALL_TESTS();
}
