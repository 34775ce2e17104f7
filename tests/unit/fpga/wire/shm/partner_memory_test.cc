// Memory of members that their partners map: what a hostile partner may offer, and what becomes of
// memory that goes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "fpga/wire/shm/partner_memory.hpp"
#include "tests/unit/fpga/wire/shm/wire_fixture.hpp"

namespace rio::test {
namespace {

using base::Fd;
using base::ReadableAreas;
using base::SharedMemory;
using wire::shm::GreetedWindow;
using wire::shm::PartnerMemory;

constexpr uint64_t kBytes = 16 * 4096;
constexpr uint64_t kFrom = 1 << 20;
constexpr std::string_view kText = "abc";
constexpr uint64_t kTextAt = 100;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | base::kSealFutureWrite;

/// @param there how many of the bytes are there; the others are a hole. It has kText at kTextAt.
Fd memory_of(uint64_t bytes, int seals, uint64_t there) {
  Fd fd(memfd_create("x", MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fallocate(fd.get(), 0, 0, static_cast<off_t>(there)), 0);
  EXPECT_EQ(pwrite(fd.get(), kText.data(), kText.size(), kTextAt), 3);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

std::vector<Fd> good_memory(size_t count) {
  std::vector<Fd> all;
  for (; count > 0; --count) {
    all.push_back(memory_of(kBytes, kSeals, kBytes));
  }
  return all;
}

/// Whether windows are mapped. If not, it is not because of a failure of this process.
bool maps(const std::vector<GreetedWindow>& windows, const std::vector<Fd>& fds) {
  PartnerMemory memory;
  bool sound = true;
  EXPECT_FALSE(memory.map(windows, fds, &sound));
  EXPECT_EQ(memory.windows().empty(), !sound || windows.empty());
  return sound;
}

TEST(PartnerMemory, WindowsAreFoundWhereTheyAreMapped) {
  std::vector<Fd> fds = good_memory(2);
  PartnerMemory memory;
  bool sound = false;
  ASSERT_FALSE(memory.map(std::vector<GreetedWindow>{{kFrom, kBytes}, {kFrom + kBytes, kBytes}},
                          fds, &sound));
  ASSERT_TRUE(sound);
  model::Windows& windows = memory.windows();
  const uint8_t* const at = windows.find(kFrom + kBytes + kTextAt, kText.size());
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(std::memcmp(at, kText.data(), kText.size()), 0);
  EXPECT_NE(windows.find(kFrom, kBytes), nullptr);
  EXPECT_EQ(windows.find(kFrom, kBytes + 1), nullptr) << "in one window only";
  EXPECT_EQ(windows.find(kFrom - 1, 1), nullptr);
  EXPECT_EQ(windows.find(kFrom + 2 * kBytes - 1, 2), nullptr);
  EXPECT_EQ(windows.find(kFrom, ~0ull), nullptr);
  EXPECT_EQ(windows.find(~0ull, 2), nullptr);
}

TEST(PartnerMemory, WindowsThatNoMemberOffersAreRefused) {
  EXPECT_TRUE(maps({}, {}));
  EXPECT_TRUE(maps({{kFrom, kBytes}}, good_memory(1)));
  EXPECT_FALSE(maps({{kFrom, kBytes}}, good_memory(2)));
  EXPECT_FALSE(maps({{kFrom, kBytes}}, {}));
  for (const GreetedWindow& bad : std::vector<GreetedWindow>{{kFrom, kBytes + 4096},
                                                             {kFrom, kBytes - 4096},
                                                             {kFrom, 0},
                                                             {kFrom, kBytes - 1},
                                                             {kFrom + 8, kBytes},
                                                             {~0ull & ~4095ull, kBytes}}) {
    EXPECT_FALSE(maps({bad}, good_memory(1))) << bad.from << ' ' << bad.len_bytes;
  }
  EXPECT_FALSE(maps({{kFrom, kBytes}, {kFrom + kBytes - 4096, kBytes}}, good_memory(2)));
  EXPECT_FALSE(maps({{kFrom, kBytes}, {kFrom - kBytes + 4096, kBytes}}, good_memory(2)));
}

TEST(PartnerMemory, MemoryThatCouldVanishIsRefused) {
  std::vector<Fd> fds;
  fds.emplace_back();
  for (const int too_few :
       {kSeals & ~F_SEAL_SHRINK, kSeals & ~F_SEAL_GROW, kSeals & ~base::kSealFutureWrite}) {
    fds[0] = memory_of(kBytes, too_few, kBytes);
    EXPECT_FALSE(maps({{kFrom, kBytes}}, fds));
  }
  fds[0] = memory_of(kBytes, kSeals, kBytes - 4096);
  EXPECT_FALSE(maps({{kFrom, kBytes}}, fds)) << "a hole";
  fds[0] = Fd(memfd_create("x", 0));
  EXPECT_FALSE(maps({{kFrom, kBytes}}, fds));
  fds[0] = Fd(open("/dev/zero", O_RDWR));
  EXPECT_FALSE(maps({{kFrom, kBytes}}, fds));
  fds[0] = Fd();
  EXPECT_FALSE(maps({{kFrom, kBytes}}, fds));
  constexpr uint64_t kTooLong = wire::shm::kWindowBytesMax + 4096;
  fds[0] = memory_of(kTooLong, kSeals, kTooLong);
  EXPECT_FALSE(maps({{kFrom, kTooLong}}, fds));
}

class MappingWire : public Wire {
 protected:
  /// The memory of a member, one area.
  struct Owner {
    Owner() {
      EXPECT_EQ(SharedMemory::create(kBytes, 4096, SharedMemory::Others::kRead, &memory), 0);
      areas->add(memory);
    }
    [[nodiscard]] uint64_t begin() const { return reinterpret_cast<uintptr_t>(memory.va()); }

    SharedMemory memory;
    std::shared_ptr<ReadableAreas> areas = std::make_shared<ReadableAreas>();
  };
  void connect(wire::shm::ShmWire& one, wire::shm::ShmWire& two) {
    static_cast<void>(two.route(1));
    EXPECT_TRUE(change(two).here);
    EXPECT_TRUE(change(one).here);
    for (wire::shm::ShmWire* each : {&one, &two}) {
      each->check_partners(1, 1);
    }
  }
};

TEST_F(MappingWire, PartnersMapEachOthersMemory) {
  const Owner a;
  const Owner b;
  const auto one = join(1, 1, a.areas);
  const auto two = join(2, 1, b.areas);
  connect(*one, *two);
  b.memory.va()[9] = 0x77;
  const uint8_t* const at = one->inbound()[0].windows->find(b.begin(), kBytes);
  ASSERT_NE(at, nullptr);
  EXPECT_NE(at, b.memory.va());
  EXPECT_EQ(at[9], 0x77);
  EXPECT_NE(two->inbound()[0].windows->find(a.begin(), kBytes), nullptr);
  EXPECT_NE(one->route(2)->mapped->find(a.begin(), kBytes), nullptr);
  EXPECT_NE(two->route(1)->mapped->find(b.begin(), kBytes), nullptr);
  EXPECT_EQ(two->route(1)->mapped->find(a.begin(), kBytes), nullptr);
}

TEST_F(MappingWire, AMemberWithoutMemoryMapsNone) {
  const Owner a;
  const auto one = join(1, 1, a.areas);
  const auto two = join(2);
  connect(*one, *two);
  EXPECT_TRUE(two->inbound()[0].windows->empty());
  EXPECT_TRUE(one->inbound()[0].windows->empty());
  EXPECT_TRUE(one->route(2)->mapped->empty()) << "the partner has not mapped it";
}

/// The partner still has the old memory: addresses in it mean something else now.
TEST_F(MappingWire, MemoryThatIsFreedIsNotUsedAnyMore) {
  Owner a;
  const auto one = join(1, 1, a.areas);
  const Owner b;
  const auto two = join(2, 1, b.areas);
  connect(*one, *two);
  ASSERT_NE(one->route(2)->mapped->find(a.begin(), 1), nullptr);
  const uint64_t begin = a.begin();
  a.areas->remove(a.memory.va());
  a.memory.reset();
  one->on_unmapped();
  EXPECT_EQ(one->route(2)->mapped->find(begin, 1), nullptr);
  one->check_partners(1, 1);
  EXPECT_EQ(one->route(2)->mapped->find(begin, 1), nullptr);
  EXPECT_NE(two->inbound()[0].windows->find(begin, 1), nullptr) << "it may be read as before";
}

TEST_F(MappingWire, NoDescriptorsAreLeft) {
  const auto open_fds = [] {
    const auto all = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const Owner a;
  const Owner b;
  const auto one = join(1, 1, a.areas);
  const auto before = open_fds();
  {
    const auto two = join(2, 1, b.areas);
    connect(*one, *two);
  }
  EXPECT_FALSE(change(*one).here);
  EXPECT_TRUE(wait_until([&] { return open_fds() == before; }));
}

}  // namespace
}  // namespace rio::test
