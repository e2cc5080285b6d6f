#include "storage/autoindex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

AutoindexPage Page(std::string_view html, std::string_view path = "/data/") {
  return ParseAutoindex(html, path).value();
}

TEST(Autoindex, ReadsNginxsPage) {
  const AutoindexPage page = Page(R"(<html>
<head><title>Index of /data/</title></head>
<body>
<h1>Index of /data/</h1><hr><pre><a href="../">../</a>
<a href="cat/">cat/</a>                                               23-Nov-2026 08:00                   -
<a href="a%20b%2Bc%3F%23%26.jpg">a b+c?#&amp;.jpg</a>                 23-Nov-2026 08:00                1234
<a href="%C3%A9%FF.jpg">..</a>                                        23-Nov-2026 08:00                   1
<a href="x%3Ay.txt">x:y.txt</a>                                       23-Nov-2026 08:00                   1
</pre><hr></body></html>)");
  EXPECT_THAT(page.folders, ElementsAre("cat"));
  EXPECT_THAT(page.files, ElementsAre("a b+c?#&.jpg", "\xc3\xa9\xff.jpg", "x:y.txt"));
}

TEST(Autoindex, ReadsApachesPage) {
  const AutoindexPage page = Page(R"(<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<table><tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td valign="top"><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/">Parent Directory</a></td></tr>
<tr><td><a href="cat/"><img src="/icons/folder.gif" alt="[DIR]"></a></td><td><a href="cat/">cat/</a></td></tr>
<tr><td><a href="a&amp;b.jpg">a&amp;b.jpg</a></td><td align="right">1.2K</td></tr>
<tr><td><a href="./c:d.jpg">c:d.jpg</a></td></tr></table>)");
  EXPECT_THAT(page.folders, ElementsAre("cat"));
  EXPECT_THAT(page.files, ElementsAre("a&b.jpg", "c:d.jpg"));
}

TEST(Autoindex, TakesAbsolutePathsOfItsOwnFolderAlone) {
  const AutoindexPage page = Page(
      R"(<A HREF='/data/x%20y/a.jpg'>a</A><a  class="x>y" href = "/data/x%20y/sub/" >s</a>
         <a href=/data/x%20y/b.jpg id=1>b</a><a href="/data/other/c.jpg">c</a>
         <a href="/data/x%20y/deep/d.jpg">d</a>)",
      "/data/x%20y/");
  EXPECT_THAT(page.files, ElementsAre("a.jpg", "b.jpg"));
  EXPECT_THAT(page.folders, ElementsAre("sub"));
}

TEST(Autoindex, LeavesOutWhatIsNotBelow) {
  const AutoindexPage page = Page(
      R"(<a href="..">u</a><a href="../">u</a><a href=".">s</a><a href="./">s</a><a href="">e</a>
         <a href="https://elsewhere/x.jpg">x</a><a href="mailto:me">m</a><a href="//host/x.jpg">h</a>
         <a href="#top">t</a><a href="a.jpg?x=1">q</a><a href="%2e%2e/">u</a><a href="a%2Fb.jpg">a</a>
         <a href="nul%00.jpg">n</a><a name="x">no href</a><abbr href="y.jpg">none</abbr>
         <a data-href="z.jpg" href="ok.jpg">k</a>)");
  EXPECT_THAT(page.files, ElementsAre("ok.jpg"));
  EXPECT_THAT(page.folders, IsEmpty());
}

TEST(Autoindex, AnEmptyFolderHasALinkUpwards) {
  const AutoindexPage page = Page(R"(<a href="../">../</a>)");
  EXPECT_TRUE(page.files.empty() && page.folders.empty());
}

TEST(Autoindex, APageWithoutLinksIsNone) {
  EXPECT_EQ(ParseAutoindex("<html><p>Welcome to nginx!</p></html>", "/").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ParseAutoindex("", "/").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ParseAutoindex("<a href=\"cut", "/").error().code(), Code::kInvalidArgument);
}

TEST(Autoindex, DecodesEntitiesAndKeepsWhatIsNone) {
  EXPECT_THAT(Page("<a href='a&#38;b&#x26;c&nosuch;d&.e%zz%4'>a</a>").files,
              ElementsAre("a&b&c&nosuch;d&.e%zz%4"));
}

}  // namespace
}  // namespace optcache::storage
