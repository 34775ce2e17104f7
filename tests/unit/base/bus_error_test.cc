// Memory of a device that vanishes. A file that is cut short stands for the device: an access
// behind its end raises SIGBUS.
#include "base/bus_error.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include <sys/mman.h>

#include "base/mapping.hpp"
#include "tests/support/sanitizer.hpp"

namespace rio::test {
namespace {

constexpr size_t kBytes = 2 * 4096;

/// Two pages of a device that is there until vanish().
struct Device {
  Device() {
    EXPECT_EQ(ftruncate(file.get(), kBytes), 0);
    EXPECT_EQ(base::Mapping::of_file(file, 0, kBytes, &memory), 0);
  }
  void vanish() { EXPECT_EQ(ftruncate(file.get(), 0), 0); }
  [[nodiscard]] volatile uint8_t* bytes() const { return memory.va(); }

  base::Fd file{memfd_create("device", MFD_CLOEXEC)};
  base::Mapping memory;
};

void handler_of_the_program(int) {
  _exit(42);
}

TEST(BusError, AVanishedDeviceReadsAllOnes) {
  ASSERT_EQ(base::catch_bus_errors(), 0);
  ASSERT_EQ(base::catch_bus_errors(), 0);
  Device device;
  Device other;
  const base::BusErrorRange range(device.memory.va(), kBytes);
  device.bytes()[4096] = 7;
  EXPECT_EQ(device.bytes()[4096], 7);
  device.vanish();
  device.bytes()[5] = 1;  // a write raises it, too, and goes nowhere
  EXPECT_EQ(device.bytes()[4096], 0xFF);
  EXPECT_EQ(device.bytes()[kBytes - 1], 0xFF);
  EXPECT_EQ(other.bytes()[0], 0) << "only the device that vanished";
}

TEST(BusError, OtherMemoryEndsTheProgramAsBefore) {
  Device device;
  {
    base::BusErrorRange range(device.memory.va(), kBytes);
    base::BusErrorRange moved(std::move(range));
  }
  device.vanish();
  const auto touch = [&] {
    (void)base::catch_bus_errors();
    device.bytes()[0] = 1;
  };
  // A sanitizer has a handler of its own, which ends the program in another way.
  const auto ended = [](int status) {
    const bool sanitized = kHasAddressSanitizer || kHasThreadSanitizer;
    return testing::KilledBySignal(SIGBUS)(status) || (sanitized && status != 0);
  };
  EXPECT_EXIT(touch(), ended, "");
  EXPECT_EXIT((void)base::catch_bus_errors(); raise(SIGBUS), ended, "");
}

TEST(BusErrorDeathTest, TheHandlerOfTheProgramGetsTheOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which none is caught yet
  Device device;
  device.vanish();
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, handler_of_the_program);
        (void)base::catch_bus_errors();
        device.bytes()[0] = 1;
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace rio::test
