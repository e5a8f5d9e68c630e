// SPDX-License-Identifier: Apache-2.0
// Stacks that share their outer frames share boxes, as in `export --format folded`; the driver
// entry at the end is a box for each place. Without recursion: frames come from files.
#include "tools/cli/html_flame.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tools/cli/html_output.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

constexpr int kRowPixels = 21;
// A narrower box, in percent, is less than half a pixel wide.
constexpr double kNarrowest = 0.04;
constexpr int kShades = 3;

struct Box {
  std::string name;
  std::string where;  // of a frame its source line, of an entry its place
  std::string style;  // class of the colour
  std::uint64_t total_ns = 0;
  std::uint64_t calls = 0;
  std::map<std::string, std::size_t> inner;  // by name and, of entries, place
};

struct Placed {
  std::size_t box;
  std::size_t depth;
  double left, width;  // percent
};

std::string frame_where(const Sites& sites, const Frame& frame) {
  std::string where;
  if (frame.file) {
    where = *frame.file;
    if (frame.line) where += ":" + std::to_string(*frame.line);
  }
  if (frame.module) where += (where.empty() ? "in " : " in ") + sites.modules[*frame.module].path;
  return where + (frame.is_inlined ? " (inlined)" : "");
}

// The same name has the same shade in every report.
std::string shade_of(const std::string& name) {
  std::uint32_t hash = 2166136261U;
  for (const char byte : name) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
  return "f" + std::to_string(hash % kShades);
}

std::string kind_style(const std::string& kind) {
  const bool is_known = std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
  return "k-" + (is_known ? kind : std::string("other"));
}

class Flame {
 public:
  explicit Flame(const Report& report) {
    const Sites& sites = *report.sites;
    boxes_.push_back({"all", "", "f0", 0, 0, {}});
    for (const Site& site : sites.list) add_site(sites, site);
    // What has no stack: calls below their threshold, or dropped. Merged or signalled reports may
    // have more in sites than in entries.
    const std::uint64_t known_ns = boxes_[0].total_ns;
    const std::uint64_t whole_ns = std::max(known_ns, report.observed_ns());
    boxes_[0].total_ns = whole_ns;
    std::uint64_t calls = 0;
    for (const Entry& entry : report.entries) calls += entry.totals.calls;
    if (whole_ns > known_ns) {
      const std::size_t rest = inner_box(0, "without a stack", "without a stack");
      boxes_[rest].style = "rest";
      boxes_[rest].where = "calls faster than the threshold of their kind, or of dropped places";
      boxes_[rest].total_ns = whole_ns - known_ns;
      boxes_[rest].calls = calls > boxes_[0].calls ? calls - boxes_[0].calls : 0;
    }
    boxes_[0].calls = std::max(boxes_[0].calls, calls);
  }

  std::string html() const {
    std::size_t deepest = 0, hidden = 0;
    std::string out;
    std::vector<Placed> open = {{0, 0, 0, 100}};
    while (!open.empty()) {
      const Placed placed = open.back();
      open.pop_back();
      deepest = std::max(deepest, placed.depth);
      out += box_html(placed);
      add_inner(placed, &open, &hidden);
    }
    std::string html = format("<div class=\"flame\" style=\"height:%zupx\">\n",
                              (deepest + 1) * static_cast<std::size_t>(kRowPixels));
    html += out + "</div>\n";
    if (hidden > 0) {
      html += "<p class=\"note\">" + grouped(hidden) + (hidden == 1 ? " box is" : " boxes are") +
              " too narrow to draw.</p>\n";
    }
    return html;
  }

 private:
  std::size_t inner_box(std::size_t outer, const std::string& key, const std::string& name) {
    const auto [at, is_new] = boxes_[outer].inner.try_emplace(key, boxes_.size());
    const std::size_t number = at->second;
    if (is_new) boxes_.push_back({name, "", shade_of(name), 0, 0, {}});
    return number;
  }
  void add_site(const Sites& sites, const Site& site) {
    std::size_t box = 0;
    count(site, box);
    for (auto frame = site.frames.rbegin(); frame != site.frames.rend(); ++frame) {
      const std::string name = frame_name(sites, *frame);
      box = inner_box(box, "f" + name, name);
      if (boxes_[box].where.empty()) boxes_[box].where = frame_where(sites, *frame);
      count(site, box);
    }
    box = inner_box(box, "e" + site.entry + " " + site.place, site.entry);
    boxes_[box].style = kind_style(site.kind);
    boxes_[box].where = "at " + site.place;
    count(site, box);
  }
  void count(const Site& site, std::size_t box) {
    boxes_[box].total_ns += site.total_ns;
    boxes_[box].calls += site.calls;
  }
  // Longest to the left; the last pushed is drawn first.
  void add_inner(const Placed& outer, std::vector<Placed>* open, std::size_t* hidden) const {
    std::vector<std::size_t> inner;
    for (const auto& [key, number] : boxes_[outer.box].inner) inner.push_back(number);
    std::stable_sort(inner.begin(), inner.end(), [&](std::size_t a, std::size_t b) {  //
      return boxes_[a].total_ns > boxes_[b].total_ns;
    });
    double left = outer.left;
    const std::size_t first = open->size();
    for (const std::size_t number : inner) {
      const double width = percent(to_double(boxes_[number].total_ns), whole_ns());
      if (width < kNarrowest) {
        ++*hidden;
        continue;
      }
      open->push_back({number, outer.depth + 1, left, width});
      left += width;
    }
    std::reverse(open->begin() + static_cast<std::ptrdiff_t>(first), open->end());
  }
  std::string box_html(const Placed& placed) const {
    const Box& box = boxes_[placed.box];
    const std::string part = format("%.1f", percent(to_double(box.total_ns), whole_ns()));
    std::string title = box.name + "\n" + (box.where.empty() ? "" : box.where + "\n");
    title += total_time(to_double(box.total_ns)) + ", " + part + " %, " + grouped(box.calls) +
             (box.calls == 1 ? " call" : " calls");
    std::string label = html_escaped(box.name);
    if (placed.width >= 12) label += " <i>" + part + " %</i>";
    return format("<div class=\"box %s\" style=\"left:%.4f%%;width:%.4f%%;top:%zupx\" title=\"",
                  box.style.c_str(), placed.left, placed.width,
                  placed.depth * static_cast<std::size_t>(kRowPixels)) +
           title_escaped(title) + "\">" + label + "</div>\n";
  }
  // Line ends of our own stay, those in names do not.
  static std::string title_escaped(const std::string& title) {
    std::string out;
    std::size_t from = 0;
    for (std::size_t end = title.find('\n'); end != std::string::npos;
         from = end + 1, end = title.find('\n', from)) {
      out += html_escaped(title.substr(from, end - from)) + "&#10;";
    }
    return out + html_escaped(title.substr(from));
  }
  double whole_ns() const { return to_double(boxes_[0].total_ns); }

  std::vector<Box> boxes_;
};

std::string legend(const Sites& sites) {
  std::string out = "<p class=\"legend\">";
  for (const char* kind : kKinds) {
    const bool is_there = std::any_of(sites.list.begin(), sites.list.end(),
                                      [kind](const Site& site) { return site.kind == kind; });
    if (is_there) out += format("<span><b class=\"k-%s\"></b>%s</span> ", kind, kind);
  }
  return out + "<span><b class=\"f1\"></b>function of the program or a library</span></p>\n";
}

}  // namespace

std::string flame_html(const Report& report) {
  std::string out = "<section class=\"flames\">\n<h2>Where the host waits</h2>\n";
  if (!report.sites) {
    return out +
           "<p class=\"note\">No call stacks in this report; <code>cajeta-xpu run --sites</code> "
           "records them.</p>\n</section>\n";
  }
  out +=
      "<p class=\"note\">Call stacks from the outermost function down to the driver entry; width "
      "is host time in calls that observe the device.</p>\n";
  return out + legend(*report.sites) + Flame(report).html() +
         "<p class=\"detail\" hidden></p>\n</section>\n";
}

}  // namespace cli
