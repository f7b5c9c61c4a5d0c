"""An estimate of a text's tokens that knows scripts, without a vocabulary (behaviour.md W1).

Owns: `estimate_tokens`. Driven by `tokens.ScriptCounter`. Standard library only; about a microsecond per word.

A tokenizer first cuts text into words, numbers, punctuation and white space, and then into pieces of its vocabulary. The
cutting is imitated here; how many pieces a word has is taken from its script: characters per token, measured against
OpenAI's o200k vocabulary on texts of our own, with the most frequent words of Chinese and Japanese, which are written
without spaces and are one token each. Texts of a sentence or more come out within a quarter of the truth.
"""

from __future__ import annotations

import math
import re
from typing import Final

__all__ = ["estimate_tokens"]

_RUNS: Final = re.compile(
    r"(?P<latin>[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)"
    r"|(?P<digits> ?\d+)"
    r"|(?P<han>[\u3005\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    r"|(?P<kana>[\u3040-\u30ff\uff66-\uff9f]+)"
    r"|(?P<hangul>[\u1100-\u11ff\uac00-\ud7af]+)"
    r"|(?P<cyrillic>[\u0400-\u052f]+)"
    r"|(?P<greek>[\u0370-\u03ff]+)"
    r"|(?P<arabic>[\u0600-\u06ff\u0750-\u077f]+)"
    r"|(?P<hebrew>[\u0590-\u05ff]+)"
    r"|(?P<indic>[\u0900-\u0dff]+)"
    r"|(?P<thai>[\u0e00-\u0eff]+)"
    r"|(?P<punctuation> ?[!-/:-@\[-`{-~]+[\r\n]*)"
    r"|(?P<wide>[\u2010-\u205e\u3000-\u303f\uff00-\uff65]+)"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_PER_TOKEN: Final = {
    "hangul": 1.65,
    "cyrillic": 3.8,
    "greek": 2.3,
    "arabic": 2.7,
    "hebrew": 2.3,
    "indic": 2.7,
    "thai": 2.4,
}
"""Characters per token in scripts with alphabets and syllables."""
_CASES: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HAN: Final = 0.95
"""Tokens of a Chinese character that is part of no frequent word."""
_KANA: Final = 0.8
"""Tokens of a kana that is part of no frequent word."""

_HAN_PAIRS: Final = (
    "你好我们他们自己什么怎么没有可以已经现在今天昨天时间时候问题工作公司中国世界国家城市社会经济政府人民生活学生"
    "学校老师大学教育科学技术发展研究系统数据信息网络电脑手机软件游戏视频图片文件电话服务客户用户产品市场企业管理"
    "项目计划方法结果内容提供使用需要可能不能应该知道认为觉得开始进行完成实现选择帮助谢谢朋友孩子女人男人先生小姐"
    "作者文章新闻记者历史文化电影音乐北京上海日本美国香港今年去年目前以后以前因为所以但是如果虽然或者还是就是不是"
    "这个那个这里那里哪里一个一些一下一样一起第一最后所有其他其中非常比较更多最大重要不同相关有限主要基本全部通过"
    "根据关于对于由于为了作为表示介绍联系支持设计发现显示处理分析安全质量价格银行投资活动比赛消息情况关系条件环境"
    "能力人员专家医院健康身体天气晚上下午上午分钟小时生产部门地区地方位置方面方式方向部分单位功能设置打开关闭点击"
    "登录注册下载安装更新版本错误成功失败返回输入搜索查询列表名称标题类型日期数字大小颜色黄色里面下面汽车飞机学习"
    "语言中文英文代码程序函数变量参数电子机器智能人工助手模型時間我們沒有問題現在資料手機視頻圖片電話服務產品市場"
    "開始學生老師相關会社東京今日昨日仕事場合必要情報利用商品写真映画女性男性説明質問予定午後公布最新出口进口同期"
    "增长百分之一能源需求持续下降国际国内存在很多因素确定原因季度第二第三首先然后最近一直一定一种一次一天一年几个"
    "多少如何那么这么这样怎样可是不过不会不要不好有人别人大家本人每天各种任何之后之前之间以上以下以来以及只是只有"
    "还有也是都是正在能够希望喜欢感觉相信决定准备参加举行举办组织会议报告报道采访调查统计标准规定法律法院案件安排"
    "时代时期期间同时小学毕业考试成绩课程专业职业员工经理老板总统主席书记领导干部群众代表委员会员成员团队球队冠军"
    "亚洲欧洲欧美韩国英国法国德国印度台湾广东深圳广州南京重庆四川浙江江苏山东河南湖南东北全国全球全面整个整体完全"
    "完整正常正式正确准确具体实际真实真正真的当然其实尤其特别十分更加大量大型高度高速快速速度程度长度快乐幸福漂亮"
    "简单复杂困难容易方便舒服免费收费费用收入成本利润资金资源资料材料产业行业工业农业商业贸易金融股票基金保险厨房"
    "家庭妈妈爸爸哥哥姐姐妹妹夫妻生日运动旅游旅行酒店机场公交道路交通天空太阳星期今晚年代世纪传统艺术文学小说故事"
    "歌曲演员导演节目电视广播网站网页网友博客微信微博账号密码登陆验证邮箱邮件短信通知链接地址页面按钮窗口菜单确认"
    "取消保存删除修改编辑添加复制上传目录路径库存接口对象字符字段数组循环判断执行运行启动停止测试开发设备工具照片"
    "声音视觉算法训练预测优化效果效率性能压力动力力量影响作用意义价值目标目的任务责任自由民主和平战争军事危险事故"
    "事件事情特点特色优势机会挑战风险保护保证保持维护建设建立建议意见观点精神思想理论实践经验原则政策制度改革开放"
    "创新创造制造加工销售购买消费品牌公众个人私人年轻老人儿童医生护士治疗检查疾病感染疫情病毒水果苹果香蕉动物植物"
    "土地空气污染垃圾天然注意大阪海外入力設定自然地域政治最後最高今回未来対応対象関連結果理由無料料金価格注文発送"
    "配送送料返品購入販売登録検索確認変更追加記事投稿動画"
)
_HAN_WORDS: Final = frozenset(_HAN_PAIRS[at : at + 2] for at in range(0, len(_HAN_PAIRS), 2))
"""Frequent words of two characters, one token each."""
_KANA_WORDS: Final = re.compile(
    "ありがとうございます|ございました|おねがいします|こんにちは|ございます|ありがとう|しています|ください|しました|ありません|"
    "いました|なります|できます|おすすめ|それでは|ました|います|します|でした|ません|から|です|ます|した|して|という|さん|この|その|"
    "また|する|あり|そして|しかし|ない|とう|いう|こと|それ|これ|そう|より|まで|でも|など|ある|なし|もう|まず|だけ|では|には|ので|"
    "ここ|こちら|よう|でき|いる|んな|ところ|なく|って|った|れば|ため|もの|すぐ|サイト|スタ|ード|ール|ース|ント|ング|ション|ット|"
    "ック|ライ|リー|セット|ログ|コメント|サイズ|ページ|メール|カード|コード|データ|サービス|ユーザー|システム|テーブル|ック|ター|レス"
)
_EMOJI_OF_ONE: Final = frozenset("😀😂😊😍😘😁😅😉😎❤♥👍👏🙏🔥✨😭💕💪👌🎶💖💯✅⭐☀⚡✔→←↑↓●★■▶•©®™°·€£¥×÷≤≥≠±∞√")
"""Symbols that are one token."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is; at least 1 unless it is empty."""
    tokens = 0.0
    for run in _RUNS.finditer(text):
        kind = run.lastgroup
        piece = run.group()
        if kind == "latin":
            tokens += sum(map(_word, _CASES.findall(piece))) if piece.isascii() else 1 + max(0, len(piece) - 5) / 3.5
        elif kind == "digits":
            tokens += (piece[0] == " ") + math.ceil(len(piece.lstrip()) / 3)
        elif kind == "punctuation":
            tokens += 0.8 + 0.25 * (len(piece.strip()) - 1)
        elif kind == "space":
            tokens += 0 if piece == " " else 1
        elif kind == "han":
            tokens += _han(piece)
        elif kind == "kana":
            rest = _KANA_WORDS.sub("", piece)
            tokens += _KANA * len(rest) + len(_KANA_WORDS.findall(piece))
        elif kind == "wide":
            tokens += 0.9 * len(piece)
        elif kind == "other":
            tokens += _symbol(piece)
        elif kind is not None:
            tokens += max(1.0, len(piece) / _PER_TOKEN[kind])
    return max(1, round(tokens)) if text else 0


def _word(word: str) -> float:
    """An English word, or a part of a name in code: short ones are one token, capitals take more."""
    if word.isupper():
        return 1 + max(0, len(word) - 3) / 3
    return 1 + max(0, len(word) - 7) / 10


def _han(run: str) -> float:
    tokens = 0.0
    at = 0
    while at < len(run):
        if run[at : at + 2] in _HAN_WORDS:
            tokens += 1
            at += 2
        else:
            tokens += _HAN
            at += 1
    return tokens


def _symbol(character: str) -> float:
    if character in _EMOJI_OF_ONE:
        return 1.1
    code = ord(character)
    if code == 0xFE0F:  # asks for the colored form of the character before it
        return 0.3
    if code == 0x200D or 0x1F3FB <= code <= 0x1F3FF:  # joins two, or gives a skin tone
        return 1.3
    if code >= 0x1FA70:
        return 3
    return 2.2 if code >= 0x2190 else 1.5
