// This file holds the fixed tables of the ranking: words that say nothing, synonyms, a gloss of Chinese, Japanese and Korean, and what
// file names and turns of phrase hint at. They are constants and switches, so that they cost nothing before a message is ranked. It
// knows no tool and no message.
package main

// rankStop says which English words say nothing about a tool.
func rankStop(w string) bool {
	switch w {
	case "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before", "being", "below",
		"between", "both", "but", "by", "can", "cannot", "could", "did", "do", "does", "doing", "down", "during", "each", "few", "for", "from", "further", "get", "give",
		"had", "has", "have", "having", "he", "help", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "itself", "just", "know",
		"let", "like", "ll", "m", "make", "me", "more", "most", "my", "need", "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "our", "ours",
		"out", "over", "own", "please", "re", "really", "s", "same", "she", "should", "so", "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "then",
		"there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "ve", "very", "want", "was", "we", "were", "what", "when", "where",
		"which", "while", "who", "whom", "why", "will", "with", "would", "you", "your", "yours":
		return true
	}
	return false
}

// rankRequest says which further words of a message are only the way in which something is asked for.
func rankRequest(w string) bool {
	switch w {
	case "able", "actually", "additional", "additionally", "also", "anything", "assist", "based", "best", "bit", "could", "create", "curious", "current", "currently",
		"details", "ensure", "everything", "finally", "find", "first", "furthermore", "get", "give", "going", "hello", "help", "hey", "hi", "important", "include",
		"including", "information", "interested", "kind", "kindly", "know", "lastly", "let", "like", "look", "looking", "lot", "make", "many", "maybe", "moreover",
		"much", "multiple", "need", "next", "one", "plan", "planning", "please", "provide", "really", "recommend", "related", "second", "several", "show", "some",
		"someone", "something", "sort", "specific", "suggest", "sure", "tell", "thank", "thanks", "thing", "third", "three", "trying", "two", "use", "used", "user",
		"using", "want", "way", "whether", "wondering", "would":
		return true
	}
	return false
}

// rankSynonyms are groups of words that may stand for each other, separated by semicolons.
const rankSynonyms = `delete remove erase;create generate make build;write save store export;search find lookup query discover;update edit modify change;
photo image picture;repository repo github git;website site webpage web url;paper article publication arxiv research study;movie film cinema;
weather forecast temperature climate rain snow storm sunny humidity wind;stock share ticker equity;crypto cryptocurrency bitcoin ethereum blockchain coin;
currency exchange dollar euro usd eur;company business corporate firm;job career employment vacancy;restaurant dining food cafe coffee bakery;
recipe cook dish meal ingredient;hotel accommodation lodging stay;flight airline plane airport;train railway rail;car vehicle automobile;
map location place geocode;route direction navigation;music song audio track;video youtube clip;slide presentation ppt pptx powerpoint;word docx document;
spreadsheet excel xlsx csv;chart graph plot diagram visualize visualization;email mail inbox;calendar event schedule;calculate compute math arithmetic;
translate translation language;news headline;trending trend hot popular;summary summarize overview;directory folder;database sql;
run execute command shell terminal;time date clock timezone today tomorrow;domain whois dns;dictionary definition meaning synonym;book novel library;
game gaming player;sport football soccer basketball;medical health disease drug medicine;legal law lawyer attorney;property estate house home apartment rent;
gift present;shop shopping product buy purchase store;space nasa astronomy planet;course learn education tutorial lesson;tweet twitter;
picture draw art painting;quote saying;joke humor funny;resume cv;travel trip vacation tourism tourist itinerary attraction sightseeing;price cost value;
parse extract;compare comparison;library package dependency;document pdf file;conversion converter convert;position location coordinate;review rating;
ticket booking reservation book;person people author user;school university college;fitness workout exercise;nutrition diet calorie;podcast episode;
investment finance financial portfolio;statistic stat analytic;question answer faq;website page html;browse browser navigate;click button;
discount coupon deal promo;astrology astrological horoscope zodiac tarot;fashion clothes clothing outfit style;bus subway metro transit transport traffic;
ip address geolocation;phone number;message chat sms;code program programming script;container docker;branch commit git;download fetch retrieve get;list all;
read view open show;send post publish;test check validate verify;note memory remember;task todo;gene variant mutation;trial clinical;holiday vacation;
flow flowchart diagram;interview job;speech voice tts audio;subtitle caption transcript;satellite orbit;ocean tide wave;earthquake quake seismic;
museum art artwork painting;theater cinema showtime;investor stock;dog cat pet animal;plant garden;wine beer drink cocktail`

// rankGloss gives the English words for a pair of Chinese, Japanese or Korean characters, "" where none are known.
func rankGloss(pair string) string {
	switch pair {
	case "新闻", "资讯", "新聞", "資訊", "ニュ", "뉴스":
		return "news"
	case "热榜", "热搜", "熱門":
		return "trending hot"
	case "热门":
		return "trending popular"
	case "趋势", "趨勢":
		return "trend"
	case "排行", "榜单", "排名":
		return "rank ranking"
	case "搜索", "搜尋", "検索", "검색":
		return "search"
	case "查询", "查詢":
		return "search query"
	case "获取", "獲取", "取得":
		return "get"
	case "文件", "檔案", "파일":
		return "file"
	case "目录", "目錄", "폴더":
		return "directory"
	case "图片", "图像", "圖片", "圖像", "画像", "写真":
		return "image"
	case "图表", "圖表":
		return "chart"
	case "视频", "影片", "動画", "영상":
		return "video"
	case "音乐", "音樂", "音楽", "음악":
		return "music"
	case "天气", "天氣", "天気", "날씨":
		return "weather"
	case "股票", "株価", "주식":
		return "stock"
	case "基金":
		return "fund"
	case "价格", "價格", "価格", "가격":
		return "price"
	case "汇率", "匯率", "환율":
		return "exchange rate"
	case "地图", "地圖", "지도":
		return "map"
	case "地址", "住所", "주소":
		return "address"
	case "位置", "위치":
		return "location"
	case "路线", "路線", "경로":
		return "route"
	case "导航", "導航":
		return "route direction"
	case "火车", "火車", "電車", "기차":
		return "train"
	case "车票", "車票":
		return "train ticket"
	case "车站", "車站":
		return "station"
	case "航班", "항공":
		return "flight"
	case "酒店", "호텔":
		return "hotel"
	case "餐厅", "餐廳", "식당":
		return "restaurant"
	}
	return rankGlossMore(pair)
}

func rankGlossMore(pair string) string {
	switch pair {
	case "日期", "날짜":
		return "date"
	case "时间", "時間", "시간":
		return "time"
	case "日历", "日曆", "달력":
		return "calendar"
	case "黄历":
		return "calendar almanac"
	case "农历":
		return "lunar calendar"
	case "菜谱", "食譜":
		return "recipe"
	case "食材":
		return "ingredient"
	case "代码", "코드":
		return "code"
	case "数据", "數據":
		return "data"
	case "创建", "創建", "作成":
		return "create"
	case "生成", "생성":
		return "generate"
	case "删除", "刪除", "削除", "삭제":
		return "delete"
	case "更新":
		return "update"
	case "修改", "編集", "수정":
		return "edit"
	case "列表", "一覧", "목록":
		return "list"
	case "文档", "文檔", "文書", "문서":
		return "document"
	case "表格":
		return "table"
	}
	return rankGlossRest(pair)
}

func rankGlossRest(pair string) string {
	switch pair {
	case "翻译", "翻譯", "翻訳", "번역":
		return "translate"
	case "网页", "網頁":
		return "web page"
	case "网站", "網站":
		return "website"
	case "邮件", "郵件", "메일":
		return "email"
	case "电影", "電影", "映画", "영화":
		return "movie"
	case "电视", "電視":
		return "tv"
	case "图书", "圖書":
		return "book"
	case "阅读", "閱讀":
		return "reading"
	case "游戏", "遊戲", "게임":
		return "game"
	case "科技":
		return "technology tech"
	case "财经", "財經":
		return "finance business"
	case "金融":
		return "finance"
	case "商业", "商業":
		return "business"
	case "体育", "體育":
		return "sport"
	case "国际", "國際":
		return "world international"
	case "消息":
		return "message"
	case "用户", "用戶":
		return "user"
	case "下载", "下載":
		return "download"
	case "上传", "上傳":
		return "upload"
	case "发送", "發送", "送信":
		return "send"
	case "计算", "計算", "계산":
		return "calculate"
	case "论文", "論文", "논문":
		return "paper"
	case "仓库", "倉庫":
		return "repository"
	case "任务", "任務":
		return "task"
	case "笔记", "筆記":
		return "note"
	case "购物", "購物":
		return "shopping"
	case "商品":
		return "product"
	case "支付":
		return "payment"
	case "订单", "訂單":
		return "order"
	case "语音", "語音", "音声":
		return "voice speech"
	case "总结", "總結", "要約", "요약":
		return "summary"
	case "分析", "분석":
		return "analysis"
	}
	return ""
}

// rankExtension gives what the extension of a file name hints at.
func rankExtension(ext string) string {
	switch ext {
	case "xlsx", "xls", "ods":
		return "excel spreadsheet sheet"
	case "csv", "tsv":
		return "csv excel spreadsheet"
	case "pptx", "ppt", "odp":
		return "ppt presentation slide"
	case "docx", "doc", "odt":
		return "word document docx"
	case "pdf":
		return "pdf document"
	case "md":
		return "markdown file"
	case "txt":
		return "text file"
	case "json", "html", "yaml", "xml", "toml":
		return ext + " file"
	case "yml":
		return "yaml file"
	case "htm":
		return "html file"
	case "py":
		return "python code file"
	case "js", "ts", "go", "rs", "java", "cpp", "rb":
		return "code file"
	case "png", "jpg", "jpeg", "gif", "webp", "bmp", "heic":
		return "image"
	case "svg":
		return "svg image"
	case "wav", "mp3", "flac", "ogg", "m4a":
		return "audio music"
	case "mp4", "mov", "mkv", "webm":
		return "video"
	case "zip":
		return "zip archive"
	case "tar", "gz", "tgz":
		return "archive"
	case "sql":
		return "sql database"
	case "db", "sqlite":
		return "database"
	case "log":
		return "log file"
	}
	return ""
}

// rankEntry says which words in a tool's name, stemmed, make it one to begin with.
func rankEntry(stem string) bool {
	switch stem {
	case "search", "find", "list", "query", "creat", "read", "fetch", "navigat", "lookup", "geocod":
		return true
	}
	return false
}

// The kinds of hints that single words of a message give.
const (
	hintWrite = 1 << iota // beside a path: something is to be written
	hintRead              // beside a path: something is to be read
	hintTime
	hintSum
	hintNear
	hintRoute
	hintWeb
)

// rankHint gives the hints of one word of a message, as it stands there.
func rankHint(w string) int {
	switch w {
	case "today", "tonight", "tomorrow", "yesterday", "now":
		return hintTime
	case "sum", "total", "average", "balance", "difference", "ratio":
		return hintSum
	case "near", "nearby", "around", "street", "avenue", "address", "neighbourhood", "neighborhood", "downtown":
		return hintNear
	case "direction", "directions", "route", "routes", "commute":
		return hintRoute
	case "latest", "recent", "news", "online", "internet", "web", "website", "google", "link", "links", "reference", "references", "source", "sources", "background":
		return hintWeb
	case "from":
		return hintRead
	}
	switch rankStem(w) {
	case "save", "saved", "saving", "writ", "written", "export", "stor", "put", "output", "creat", "generat", "produc", "draft", "organiz", "organis", "compil", "record":
		return hintWrite
	case "read", "load", "open", "extract", "locat", "analyz", "analys", "pars", "inspect", "check":
		return hintRead
	}
	for _, start := range []string{"calculat", "estimat", "percent", "comput"} {
		if len(w) >= len(start) && w[:len(start)] == start && w != "computer" && w != "computers" {
			return hintSum
		}
	}
	return 0
}

// rankPhrase gives the hints of two neighbouring words.
func rankPhrase(a, b string) int {
	switch b {
	case "week", "month", "year", "days", "weeks", "months", "years":
		if a == "this" || a == "next" || a == "past" || a == "last" {
			return hintTime
		}
	case "much":
		if a == "how" {
			return hintSum
		}
	case "to":
		if a == "close" {
			return hintNear
		}
	case "distance":
		if a == "walking" {
			return hintNear
		}
	case "there":
		if a == "get" {
			return hintRoute
		}
	case "up":
		if a == "look" {
			return hintWeb
		}
	}
	if a == "within" && b != "" && b[0] >= '0' && b[0] <= '9' {
		return hintNear
	}
	return 0
}

// rankHintWords gives what a hint has looked for: words, each with its weight behind it where that is not 1.
func rankHintWords(hint int) string {
	switch hint {
	case hintWrite:
		return "write"
	case hintRead:
		return "read 0.7"
	case hintTime:
		return "time 0.6 date 0.5 current 0.4"
	case hintSum:
		return "calculate calculator"
	case hintNear:
		return "nearby geocode 0.8 place 0.6 location 0.6"
	case hintRoute:
		return "direction route 0.8"
	case hintWeb:
		return "web 0.7 search 0.4"
	}
	return ""
}
