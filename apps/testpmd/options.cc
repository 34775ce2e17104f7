#include "apps/testpmd/options.hpp"

#include <algorithm>
#include <cerrno>

#include "apps/testpmd/size_sweep.hpp"

namespace rio::testpmd {
namespace {

int fail(std::string* error, std::string text) {
  *error = std::move(text);
  return -EINVAL;
}

}  // namespace

const OptionDef* find_option(std::string_view name) {
  for (const OptionDef& option : option_table()) {
    if (name == option.name) {
      return &option;
    }
  }
  return nullptr;
}

bool parse_list(std::string_view text, uint32_t max, std::vector<unsigned>* out) {
  std::vector<unsigned> list;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    more = comma != std::string_view::npos;
    text.remove_prefix(more ? comma + 1 : text.size());
    const size_t dash = part.find('-');
    uint64_t first = 0;
    if (!parse_number(part.substr(0, dash), max, &first)) {
      return false;
    }
    uint64_t last = first;
    if (dash != std::string_view::npos &&
        (!parse_number(part.substr(dash + 1), max, &last) || last < first)) {
      return false;
    }
    for (uint64_t n = first; n <= last; ++n) {
      if (std::find(list.begin(), list.end(), n) != list.end()) {
        return false;
      }
      list.push_back(static_cast<unsigned>(n));
    }
  }
  *out = std::move(list);
  return true;
}

int parse_options(std::span<const std::string_view> args, Options* out, std::string* error) {
  Options options = *out;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view arg = args[i];
    if (arg == "-i") {
      arg = "--interactive";
    } else if (arg == "-h") {
      arg = "--help";
    }
    if (!arg.starts_with("--")) {
      return fail(error,
                  std::string("'").append(arg).append("' is no option; options begin with --"));
    }
    arg.remove_prefix(2);
    const size_t equals = arg.find('=');
    const std::string_view name = arg.substr(0, equals);
    const OptionDef* option = find_option(name);
    if (option == nullptr) {
      return fail(error, std::string("no option '--").append(name).append("'; --help lists them"));
    }
    std::string_view value;
    if (option->value == nullptr) {
      if (equals != std::string_view::npos) {
        return fail(error, std::string("--").append(name).append(" takes no value"));
      }
    } else if (equals != std::string_view::npos) {
      value = arg.substr(equals + 1);
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return fail(error,
                  std::string("--").append(name).append(" wants a value: ").append(option->value));
    }
    std::string why;
    if (option->set(options, value, &why) != 0) {
      return fail(error, std::string("--").append(name).append(": ").append(why));
    }
  }
  *out = std::move(options);
  return 0;
}

int check_options(const Options& options, std::string* error) {
  if (options.seconds > 0 && options.count > 0) {
    return fail(error, "--seconds and --count exclude each other; give one of them");
  }
  if (options.sizes.size() > 1 && options.seconds <= 0 && options.count == 0) {
    return fail(error, "a sweep of " + std::to_string(options.sizes.size()) +
                           " sizes needs --seconds or --count for each size");
  }
  if (!options.forward_lcores.empty() && options.nb_cores != 0 &&
      options.forward_lcores.size() != options.nb_cores) {
    return fail(error, "--forward-lcores names " + std::to_string(options.forward_lcores.size()) +
                           " lcores, but --nb-cores is " + std::to_string(options.nb_cores) +
                           "; leave --nb-cores out");
  }
  if (!options.json_file.empty() && options.interactive) {
    return fail(error, "--json and -i exclude each other; leave out -i");
  }
  return 0;
}

}  // namespace rio::testpmd
