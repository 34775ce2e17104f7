#include "apps/testpmd/size_sweep.hpp"

#include <cerrno>

#include "base/number.hpp"

namespace rio::testpmd {
namespace {

constexpr size_t kMaxPoints = 4096;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(comma + 1);
  }
}

int fail(std::string* error, std::string text) {
  *error = std::move(text);
  return -EINVAL;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

}  // namespace

bool parse_number(std::string_view text, uint64_t max, uint64_t* out) {
  return base::read_bytes(text, 0, max, out);
}

int parse_sizes(std::string_view text, uint32_t max_bytes, std::vector<uint32_t>* sizes,
                std::string* error) {
  const std::vector<std::string_view> parts = split(text);
  const std::string range = "1 to " + std::to_string(max_bytes) + " bytes";
  if (parts.size() != 1 && parts.size() != 4) {
    return fail(error, "size " + quoted(text) +
                           " is neither a number nor first,last,step,ADD|MUL (64 or 8,4096,2,MUL)");
  }
  uint64_t first = 0;
  if (!parse_number(parts[0], max_bytes, &first) || first == 0) {
    return fail(error, "size " + quoted(parts[0]) + " is not " + range);
  }
  if (parts.size() == 1) {
    sizes->assign(1, static_cast<uint32_t>(first));
    return 0;
  }
  uint64_t last = 0;
  uint64_t step = 0;
  if (!parse_number(parts[1], max_bytes, &last) || last == 0) {
    return fail(error, "last size " + quoted(parts[1]) + " is not " + range);
  }
  if (last < first) {
    return fail(error, "sweep " + quoted(text) + " ends before it begins; write first,last,step");
  }
  const bool multiply = parts[3] == "MUL" || parts[3] == "mul";
  if (!multiply && parts[3] != "ADD" && parts[3] != "add") {
    return fail(error, "sweep operation " + quoted(parts[3]) + " is neither ADD nor MUL");
  }
  if (!parse_number(parts[2], max_bytes, &step) || step < (multiply ? 2u : 1u)) {
    return fail(error, "sweep step " + quoted(parts[2]) + " is not a number of at least " +
                           (multiply ? "2 (MUL)" : "1 (ADD)"));
  }
  std::vector<uint32_t> points;
  for (uint64_t size = first; size <= last; size = multiply ? size * step : size + step) {
    points.push_back(static_cast<uint32_t>(size));
    if (points.size() > kMaxPoints) {
      return fail(error, "sweep " + quoted(text) + " has more than " + std::to_string(kMaxPoints) +
                             " sizes; take a larger step");
    }
  }
  *sizes = std::move(points);
  return 0;
}

}  // namespace rio::testpmd
