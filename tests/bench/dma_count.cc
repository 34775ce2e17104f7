// Writes memory to the memory of another node by a dma_rio device, so that callgrind can count what
// the driver does for it:
//   LD_LIBRARY_PATH=build/pmd/raw:build/pmd/dma valgrind --tool=callgrind --collect-atstart=no
//     --toggle-collect=rio_bench_dma dma_count eal|external|copied BYTES ROUNDS
// The source memory is
//   eal       allocated by rte_malloc()
//   external  registered by rte_extmem_register() and rte_dev_dma_map(). The driver is given
//             addresses of a mapping without access rights; the card has another mapping of the
//             same memory. A driver that copies by the given addresses dies by SIGSEGV.
//   copied    as eal, but memcpy() copies instead of the card: proves that the count shows a copy
// The count has dmadev's copy, submit, and the completed() that reports the write, without the time
// of the card in between. Prints one JSON object.
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "pmd/dma/rte_dma_rio.h"
#include "tests/bench/dma_device.hpp"
#include "tests/bench/eal.hpp"

namespace {

using rio::bench::expect;

constexpr size_t kPage = 4096;
constexpr size_t kBytesMax = 1 << 20;
constexpr uint32_t kTurnsMax = 1'000'000;  // turns to carry a write; far more than needed
constexpr uint32_t kTurnsAfter = 64;       // turns for the answer, once the bytes have arrived

struct Write {
  int16_t device;
  rte_iova_t from;
  rte_iova_t to;
  uint32_t bytes;
  void* copy_to;  // null: the card copies
};

}  // namespace

// The code that callgrind counts, in two calls a write. Not inlined, and with a name that is easy
// to type.
extern "C" [[gnu::noinline]] int rio_bench_dma(const Write* write, bool begins) {
  if (!begins) {
    bool failed = false;
    return rte_dma_completed(write->device, 0, 1, nullptr, &failed) == 1 && !failed ? 0 : -1;
  }
  if (write->copy_to != nullptr) {
    std::memcpy(write->copy_to, reinterpret_cast<const void*>(write->from), write->bytes);
    return 0;
  }
  const int rc = rte_dma_copy(write->device, 0, write->from, write->to, write->bytes, 0);
  return rc < 0 ? rc : rte_dma_submit(write->device, 0);
}

namespace {

/// Memory to write from, and its address for the driver.
struct Source {
  uint8_t* bytes = nullptr;
  rte_iova_t iova = 0;
};

Source eal_memory() {
  auto* const bytes = static_cast<uint8_t*>(rte_zmalloc("source", kBytesMax, kPage));
  expect(bytes != nullptr, "memory of EAL");
  return {bytes, rte_mem_virt2iova(bytes)};
}

/// Memory as programs register it themselves; see above for its two mappings.
Source external_memory() {
  const int fd = memfd_create("source", 0);
  expect(fd >= 0 && ftruncate(fd, kBytesMax) == 0, "memory of a file");
  void* const bytes = mmap(nullptr, kBytesMax, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* const told = mmap(nullptr, kBytesMax, PROT_NONE, MAP_SHARED, fd, 0);
  expect(bytes != MAP_FAILED && told != MAP_FAILED, "mapping memory twice");
  close(fd);
  const auto iova = reinterpret_cast<rte_iova_t>(told);
  std::vector<rte_iova_t> pages;
  for (size_t at = 0; at < kBytesMax; at += kPage) {
    pages.push_back(iova + at);
  }
  expect(rte_extmem_register(bytes, kBytesMax, pages.data(), static_cast<unsigned>(pages.size()),
                             kPage) == 0,
         "rte_extmem_register");
  rte_device* card = nullptr;
  rte_dev_iterator found;
  RTE_DEV_FOREACH(card, "bus=vdev,name=raw_rio0", &found) {
    expect(rte_dev_dma_map(card, bytes, iova, kBytesMax) == 0, "rte_dev_dma_map");
    return {static_cast<uint8_t*>(bytes), iova};
  }
  expect(false, "no device raw_rio0: is librte_raw_rio.so loaded?");
  return {};
}

/// A card that writes, the card that is written to, and a second device on the first card: polling
/// it lets that card work without polling the measured queue.
class Cards {
 public:
  Cards() {
    expect(target_ != nullptr, "memory of EAL");
    to_ = rio::bench::start_dma("dma_rio1", RTE_DMA_DIR_DEV_TO_MEM, 0);
    from_ = rio::bench::start_dma("dma_rio0", RTE_DMA_DIR_MEM_TO_DEV, rte_dma_rio_dest_id(to_));
    beside_ = rio::bench::start_dma("dma_rio2", RTE_DMA_DIR_MEM_TO_DEV, rte_dma_rio_dest_id(to_));
    const rte_dma_rio_window window = {.rio_addr = 0,
                                       .iova = rte_mem_virt2iova(target_),
                                       .len = kBytesMax,
                                       .source = 0,
                                       .source_mask = 0,
                                       .key = 0,
                                       .rights = RTE_DMA_RIO_WRITE,
                                       .reserved = {}};
    uint32_t index = 0;
    expect(rte_dma_rio_window_open(to_, &window, &index) == 0, "opening a window");
  }

  /// @param copy whether memcpy() copies the bytes, too.
  void write(const Source& source, uint32_t bytes, bool copy, uint64_t number) {
    std::memcpy(source.bytes, &number, sizeof(number));
    std::memcpy(source.bytes + bytes - sizeof(number), &number, sizeof(number));
    const Write one = {from_, source.iova, 0, bytes, nullptr};
    if (copy) {
      const Write copied = {from_, source.iova, 0, bytes, target_};
      expect(rio_bench_dma(&copied, true) == 0, "copying");
      std::memset(target_, 0, kBytesMax);
    }
    expect(rio_bench_dma(&one, true) == 0, "posting a write");
    for (uint32_t turn = 0; turn < kTurnsMax && !arrived(bytes, number); ++turn) {
      work();
    }
    expect(arrived(bytes, number), "a write that arrives");
    for (uint32_t turn = 0; turn < kTurnsAfter; ++turn) {
      work();
    }
    expect(rio_bench_dma(&one, false) == 0, "a write that is reported when its answer is there");
  }

 private:
  void work() const {
    rio::bench::step_card(beside_);
    rio::bench::step_card(to_);
  }
  [[nodiscard]] bool arrived(uint32_t bytes, uint64_t number) const {
    return std::memcmp(target_, &number, sizeof(number)) == 0 &&
           std::memcmp(target_ + bytes - sizeof(number), &number, sizeof(number)) == 0;
  }

  uint8_t* const target_ = static_cast<uint8_t*>(rte_zmalloc("target", kBytesMax, kPage));
  int16_t to_ = 0;
  int16_t from_ = 0;
  int16_t beside_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 4 ? argv[1] : "";
  const unsigned long bytes = argc == 4 ? std::strtoul(argv[2], nullptr, 0) : 0;
  if ((kind != "eal" && kind != "external" && kind != "copied") || bytes < 8 || bytes > kBytesMax) {
    std::fprintf(stderr, "usage: %s eal|external|copied BYTES ROUNDS: 8 to 1048576 bytes\n",
                 argv[0]);
    return 1;
  }
  const uint64_t rounds = std::strtoull(argv[3], nullptr, 0);
  rio::bench::start_eal({"-d", "librte_raw_rio.so", "-d", "librte_dma_rio.so",
                         "--vdev=raw_rio0,wire=count,qps=3", "--vdev=dma_rio0,card=raw_rio0",
                         "--vdev=dma_rio2,card=raw_rio0", "--vdev=dma_rio1,wire=count"});
  const Source source = kind == "external" ? external_memory() : eal_memory();
  Cards cards;
  for (uint64_t i = 1; i <= rounds; ++i) {
    cards.write(source, static_cast<uint32_t>(bytes), kind == "copied", i);
  }
  std::printf("{\"kind\": \"%s\", \"bytes\": %lu, \"writes\": %llu}\n", argv[1], bytes,
              static_cast<unsigned long long>(rounds));
  return 0;
}
